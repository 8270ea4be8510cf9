package balancer

import (
	"sync/atomic"

	"sync"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/control"
	"roundhouse/balancer/extend"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/memory"
	"roundhouse/balancer/metrics"
	"roundhouse/balancer/resume"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// exchange is one request from its acceptance to its end. It belongs to one
// goroutine; others may only tell its booking to stop, take its spare, and read
// its atomic fields.
type exchange struct {
	d *common
	v *snapshot
	g *guard

	asked   asked
	payload memory.Payload
	booking booking
	record  record
	came    wire.Answer // the head of the worker's answer

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
	whole []byte // the answer for the client; nil: the client has left
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
func (x *exchange) show() { x.shown.Store(true) }

// hangUp tells the exchange that its client has left.
func (x *exchange) hangUp() { x.booking.cancel(causeClient) }

// refused enters that the door answers with an error of its own.
func (x *exchange) refused(f *surface.Failure) {
	x.record.status = f.Status
	x.record.outcome, x.record.code = "refused", f.Code
	if f.Status == 500 || f.Status == 502 || f.Code == "no_worker" {
		x.record.outcome = "failed"
	}
	if f.Reason != "" {
		x.d.metrics.Refused(x.asked.pool.Name, f.Reason)
		x.asked.pool.Tally.Refused(f.Reason)
	}
}

// finish is the end of every exchange: its books, its line in the log.
func (x *exchange) finish() {
	x.g.serve(nil)
	if x.booking.Charge.Worker() != nil {
		x.abandon() // a path that ended without its release would be a fault
	}
	x.payload.GiveBack(&x.d.memory)
	r := &x.record
	if x.asked.key != nil {
		x.asked.key.Leave()
		x.asked.key.Charge(x.used() - x.booking.advance)
	}
	x.d.live.delist(x)
	if r.outcome == "" {
		r.outcome = outcomeOf(r.status)
	}
	x.tell()
	x.count()
	x.judged()
	x.account()
	x.logged.end(x.d.id, &x.asked, r)
	x.d.past.add(&x.asked, r)
	if x.v.set.Log.Access {
		logAccess(x.d.access, &x.v.set.Log, &x.asked, r)
	}
}

// count enters the request in the metrics.
func (x *exchange) count() {
	a, r, k := &x.asked, &x.record, x.asked.labels()
	if r.series == nil {
		r.series = x.d.metrics.Of(k)
		if r.first > 0 { // of a stream, its first event was counted when it came
			r.series.Began(r.first - a.start)
			a.pool.Tally.First(r.first - a.start)
		}
	}
	a.pool.Tally.Ended(r.outcome, r.usage.Prompt)
	x.d.metrics.Ended(r.series, k, &metrics.Outcome{
		Status: r.status, Word: r.outcome, Priority: a.priority, Took: r.ended - a.start,
		Overhead: r.overhead, Queued: r.queued, Usage: r.usage, Generated: r.generated.Load(),
	})
}

// account enters the request in the use of its key, if an engine has answered it. A
// filter's keys are without bound: they are one.
func (x *exchange) account() {
	r := &x.record
	if x.booking.sentAt == 0 || r.status >= 400 && r.outcome != "cancelled" {
		return
	}
	name := ""
	if k := x.asked.key; k != nil {
		if name = k.Name; x.v.keys.Configured(name) != k {
			name = "other"
		}
	}
	out := r.output()
	x.d.usage.Count(name, x.asked.labels().Model, control.Used{Requests: 1, TokensIn: x.used() - out, TokensCached: max(0, r.usage.Cached), TokensOut: out}, time.Now())
}

// used is the tokens that the request's key is charged with in the end. If the
// answer has no usage, the prompt counts as it was estimated: several
// choices, an echo, or a client that left before the end are no cheaper.
func (x *exchange) used() int64 {
	r := &x.record
	prompt := r.usage.Prompt
	if !r.usage.Known && x.booking.sentAt > 0 && (r.status == 200 || r.outcome == "cancelled") {
		prompt, _ = x.asked.estimate()
	}
	return prompt + r.output()
}

// tell has the filters and the trace know how the request ended.
func (x *exchange) tell() {
	x.record.ended = x.d.now()
	if x.pass != nil {
		x.pass.End(x.record.told(x.asked.start))
	}
	x.trace.finish(&x.asked, &x.record)
	x.trace = nil
	if k := x.asked.key; k != nil && x.v.keys.Configured(k.Name) == k && x.d.current().keys.Configured(k.Name) != nil { // a filter's keys are without bound
		r := &x.record
		x.d.metrics.EndedOf(k.Name, &metrics.Outcome{Word: r.outcome, Usage: r.usage, Generated: r.generated.Load()})
	}
}

// parted returns the outcome of an exchange that is over, and the failure that its
// client is told: nil if the client has left.
func (x *exchange) parted(phase string) (f *surface.Failure, outcome string) {
	switch cause(x.booking.why.Load()) {
	case causeClient:
		x.d.metrics.HungUp(x.asked.pool.Name, phase)
		return nil, "cancelled"
	case causeStop:
		return &surface.Failure{Status: 503, Type: "service_unavailable", Code: "shutting_down", Message: "the door is shutting down"}, "failed"
	}
	return &surface.Failure{Status: 499, Type: "api_error", Code: "cancelled", Message: "the request was cancelled by an operator"}, "cancelled"
}

// exchanges are used again: new memory for every request is cold, and evicts
// warm lines from the cache, here and in the processes beside.
var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// blank is an exchange that holds nothing of the request before. It is cleared
// now, not at the end of that request: clearing warms the memory that is about to be filled.
func blank() *exchange {
	x := exchanges.Get().(*exchange)
	b := &x.booking
	*x = exchange{booking: booking{hits: b.hits[:0], chunks: b.chunks[:0], tried: b.tried[:0], items: items{b.items.places[:0], b.items.digests[:0], b.items.looks[:0]}}}
	return x
}
