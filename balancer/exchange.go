package balancer

import (
	"sync/atomic"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/extend"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/memory"
	"roundhouse/balancer/resume"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// exchange is one request from its acceptance to its end. It belongs to one
// goroutine; others may only tell its booking to stop, take its spare, and look
// at what is atomic.
type exchange struct {
	d *common
	v *view
	g *guard

	asked   asked
	payload memory.Payload
	booking booking
	record  record

	close  bool                                            // the connection ends with the answer
	answer *resume.Stream                                  // nil: the answer does not stream
	beats  beater                                          // for a client whose stream is silent
	pin    string                                          // the worker that it must begin at, pool/name; empty: any
	reads  func(*wire.Seen, *keyring.Key) *surface.Failure // of a body that passes through; nil: it is read whole
	pass   *extend.Pass                                    // its way through the filters; nil: there are none
	trace  *trace                                          // nil: traces are not sent
	out    direct                                          // where the door has read the request itself
	logged *capture                                        // for the log of requests; nil: none is written
	shown  atomic.Bool                                     // others may hold it still when it has ended
}

// direct answers where the door has read the request itself: the answer is read
// from the worker behind room for its head, and leaves in one write, once the
// exchange has ended and its books are closed.
type direct struct {
	o     *conn.Out
	whole []byte // what the client gets; nil where it has left
	on    bool   // it was passed on already, and the connection goes on
}

// beater keeps a client's connection alive, and reports whether it could.
type beater interface{ heartbeat() bool }

// lost gives the charge back after a worker failed, and leaves that worker
// out from now on.
func (x *exchange) lost(how ledger.Outcome, reason string) {
	x.booking.tried = append(x.booking.tried, x.booking.Charge.Try())
	x.d.metrics.Retried(x.asked.pool.Name, reason)
	if c := x.booking.depart(); c != nil {
		c.Close()
	}
	x.release(how)
}

// release gives the charge back, and lets the queue look for room.
func (x *exchange) release(how ledger.Outcome) { x.releaseAt(how, x.d.now()) }

func (x *exchange) releaseAt(how ledger.Outcome, now int64) {
	if x.d.ledger.Release(&x.booking.Charge, how, now) {
		x.asked.pool.Pump(&x.d.fleet)
	}
}

// abandon ends the work for a request that nobody waits for.
func (x *exchange) abandon() {
	x.booking.drop()
	x.release(ledger.Neutral)
	x.record.outcome = "cancelled"
}

// free lets another request use an exchange that has ended, unless somebody
// may hold it still.
func (x *exchange) free() {
	if x.shown.Load() {
		return
	}
	exchanges.Put(x)
}

// show notes that somebody beside its own goroutine holds an exchange, which
// therefore serves no other request. Who takes one out of the list of what is in
// flight, or from its connection, calls it under the lock of that.
func (x *exchange) show() *exchange {
	x.shown.Store(true)
	return x
}
