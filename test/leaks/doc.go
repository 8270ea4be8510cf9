// Package leaks finds the goroutines that a package's tests left behind.
//
// A goroutine that was told to end needs a moment for it, and on a busy machine more
// than the half second that goleak grants. Here it has a minute: one that ends at all
// is no leak, and one that does not is told with its stack.
package leaks
