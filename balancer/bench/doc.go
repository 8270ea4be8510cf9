// Command bench measures the door beside nginx and HAProxy, on the same two
// upstreams, in turns, and prints one table of figures and ratios. `make
// bench-door` runs it; -short takes about a minute and a half.
//
// The upstreams and the clients are this program itself, in processes of
// their own, so that what a proxy costs is what its own process costs.
package main
