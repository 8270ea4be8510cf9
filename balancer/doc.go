// Package balancer is the front door: it takes requests on a listener, places
// each by the ledger, relays the answer, and brings a stream whose worker dies
// to its end at another one.
//
// The path of a request. A guard checks every byte of a connection before
// fasthttp reads it (guard.go). The handler knows a fixed list of paths
// (surface.go), checks the key, scans the JSON body once (wire.Peek), finds the
// pool that serves the model, and makes an exchange. The exchange asks the
// ledger for a worker, or waits in the pool's queue, sends a request built
// anew from parsed parts, and relays the answer: one that does not stream
// through fasthttp, a stream by itself on the hijacked connection, with one
// goroutine that waits in the poller and holds no buffer.
//
// What is retried: everything before the first event, at workers not tried
// yet. After it, nothing is retried and the stream is resumed instead: the
// client sees one stream. Where that cannot be, it sees one error event and
// no end mark, because clients take those for success.
//
// Who owns what. An exchange belongs to one goroutine; others may only call
// cancel. A charge is released by its exchange alone. Workers and pools live
// as long as the worker set names them; the set in force is replaced whole.
package balancer
