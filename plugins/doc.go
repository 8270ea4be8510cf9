// Package plugins runs other people's programs for the door and the supervisor:
// routing policies, filters, drivers and notifiers, each a process of its own.
//
// A Plugin is started from a file whose SHA-256 is the configured one: the file is
// copied into sealed memory, hashed there and run from there, so that what was
// checked is what runs. It inherits no environment and no file but its own program; its socket lies in
// a folder that it alone can open, behind certificates made for this start (go-plugin's AutoMTLS, with curves
// that other languages' TLS can verify).
//
// # What a plugin can cost
//
// Its own calls and nothing else. Every call has a deadline; a few run at once and
// the rest waits within its own deadline; failures in a row open a breaker, and
// while it is open a call ends at once. A plugin that dies, hangs or outgrows its
// memory is killed and started anew with growing pauses. What happens to the caller
// meanwhile is the configuration's on_failure. With no plugin configured nothing of this package runs.
//
// # Goroutines
//
// Each Plugin owns one goroutine (run) that starts, watches and restarts its
// process, beside those of go-plugin's client. Close ends them all and waits.
package plugins
