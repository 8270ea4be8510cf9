// Package sdk is what a plugin in Go needs: implement one interface, serve it.
//
//	func main() { sdk.ServePolicy(nearest{}) }
//
// A plugin is a process of its own. It is started by Roundhouse, speaks gRPC over
// a socket that only the two of them can use, and ends when Roundhouse ends it. It
// inherits no environment. What it prints to standard error is joined to
// Roundhouse's log; standard output belongs to the handshake and must stay empty.
//
// The messages are defined in plugins/proto/v1, which is the reference; a plugin in
// another language is made from the same files. See docs/plugins.md.
//
// This package imports nothing of Roundhouse but the generated messages.
package sdk
