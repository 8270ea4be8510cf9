// Package balancer is the front door: it takes requests on a listener, places
// each by the ledger, relays the answer, and brings a stream whose worker dies
// to its end at another one.
//
// The path of a request. The door reads plain requests, which is nearly all,
// itself, in place and once (serve.go): a POST of JSON to a path that generates
// or computes, whose head came whole. The rest goes to fasthttp behind a guard
// that checks every byte first (guard.go). Both ways check heads by
// wire.CheckHead, book bodies in the same memory, keep the same deadlines, and
// meet in an exchange; the tests of what clients see run over both. The handler
// knows a fixed list of paths (package surface), checks the key (keyring), scans the
// JSON body once (wire.PeekBody, read.go), and finds the pool that serves the model
// (asked.go). The exchange asks the ledger for a worker, or waits in the pool's queue
// (place.go, package wait), sends a request built anew from parsed parts (open.go),
// and relays the answer: an answer without a stream is held whole and leaves in one
// write (unary.go), a stream is carried by one goroutine that waits in the poller
// and holds no buffer (stream.go, relay.go). The pure package resume reads its events
// and continues it at another worker. Its books are closed in exchange.go.
//
// An exchange is four values: the client's request (asked.go, constant once it is
// read), the body (memory.Payload), the booking at a worker (booking.go), and the
// outcome (record.go). Access log, trace and metrics take the first and the
// last, all told in told.go.
//
// A Door listens and takes commands: worker sets (apply.go), other doors
// (peers.go, handover.go, mover.go), the private socket and the admin API; run.go is
// its life. Below it,
// in common, lies the part that connections and requests use: conns and live, each
// with its lock, the fleet (package fleet: pools, workers, reports), the ledger, the
// metrics and the memory. No request knows a Door.
//
// What the door holds. Bodies are booked in one bound. Once a stream has begun
// its body is a spare (memory.Payload), kept for resuming alone, and goes first when
// memory runs short. All memory that is lent lies in conn/buffers.go and beside its
// users.
//
// What is retried: everything before the first event, at workers not tried
// yet. After it, nothing is retried and the stream is resumed instead: the
// client sees one stream. Where that cannot be, it sees one error event and
// no end mark, because clients take those for success.
//
// Who owns what. An exchange belongs to one goroutine; others may only call
// cancel, and an exchange that they have held serves no other request (exchange.free). A
// charge is released by its exchange alone. Workers and pools live as long as
// the worker set names them; the set in force is replaced whole.
package balancer
