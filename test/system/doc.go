// Package system runs `roundhouse up` for tests of other packages than test's own,
// and asks its admin API.
package system
