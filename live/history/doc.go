// Package history keeps what figures were: 24 hours by 5 seconds and 30 days by a minute,
// in a bounded store. It is pure: times are handed in.
package history
