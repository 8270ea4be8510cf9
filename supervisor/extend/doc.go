// Package extend is what plugins add to the supervisor: drivers that run workers on
// something that is not built in, and notifiers that carry events out.
package extend
