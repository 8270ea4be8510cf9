// Package lines writes a log for those who must not wait for it. Lines are
// gathered in memory and written in batches by one goroutine, [Late] after the
// first of them at most where the output takes them; Close writes all that are
// left. What does not fit while the output is stuck, or what it refuses, is
// dropped, counted, and told of by a line once lines go again.
package lines
