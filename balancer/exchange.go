package balancer

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/extend"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/memory"
	"roundhouse/balancer/metrics"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// exchange is one request from its acceptance to its end. It belongs to one
// goroutine; others may only tell its booking to stop, take its spare, and look
// at what is atomic.
type exchange struct {
	d *Door
	v *view
	g *guard

	asked   asked
	payload memory.Payload
	booking booking
	record  record

	close   bool         // the connection ends with the answer
	s       *relay       // nil: the answer does not stream
	pin     string       // the worker that it must begin at, pool/name; empty: any
	through *passing     // nil: it is read whole
	pass    *extend.Pass // its way through the filters; nil: there are none
	trace   *trace       // nil: traces are not sent
	out     direct       // where the door has read the request itself
	shown   atomic.Bool  // others may hold it still when it has ended
}

// open finds a worker and sends it the request, again elsewhere where one
// fails, until the head of an answer is there. Then x.up holds the connection
// just behind that head, and the charge is live.
func (x *exchange) open(a *wire.Answer) *surface.Failure {
	for {
		if x.booking.over() {
			return nil
		}
		if f := x.place(); f != nil || x.booking.over() {
			return f
		}
		w := x.booking.worker.Load()
		err := x.send(w, a, false)
		had := !neverHad(err)
		if errors.Is(err, conn.ErrStale) {
			err = x.send(w, a, true)
			had = had || !neverHad(err) // at a worker that has died since, it counts how the kept connection ended
		}
		if x.booking.over() {
			return nil
		}
		if err != nil {
			if _, f := x.broken(err, had, retryReason(err), "worker failed a request"); f != nil {
				return f
			}
			continue
		}
		if again, how := x.refusedBy(a); again {
			x.lost(how, fmt.Sprintf("status_%d", a.Status))
			continue
		}
		return nil
	}
}

func retryReason(err error) string {
	if conn.TimedOut(err) {
		return "timeout"
	}
	return "connection"
}

// refusedBy reports whether an answer is a refusal that another worker may
// not give.
func (x *exchange) refusedBy(a *wire.Answer) (bool, ledger.Outcome) {
	how := ledger.Neutral
	switch {
	case a.Status == 429 || a.Status == 503:
		how = ledger.Busy
	case a.Status < 500 || a.Status == 501 || a.Status == 505:
		return false, ledger.Neutral
	}
	cfg := &x.v.set.Door.Retry
	if x.booking.attempts >= cfg.Attempts || !x.asked.pool.Others(&x.d.fleet, x.booking.tried, x.booking.Charge.Worker()) || !x.asked.pool.Retries.Spend(x.d.now(), cfg.Budget) {
		return false, how
	}
	x.booking.attempts++
	if how == ledger.Neutral {
		x.booking.erred = append(x.booking.erred, x.booking.Charge.Try())
	}
	return true, how
}

// send writes the request to a worker and reads the head of its answer.
func (x *exchange) send(w *fleet.Worker, a *wire.Answer, fresh bool) error {
	now := x.d.now()
	c, err := w.Up.Load().Get(fresh, now)
	if err != nil {
		return err
	}
	if err := x.booking.hold(c); err != nil {
		c.Close()
		return err
	}
	x.record.state.CompareAndSwap(phaseQueued, phaseSent)
	if x.record.overhead == 0 {
		x.record.overhead = now - x.asked.start - x.record.queued
	}
	c.WriteIn(now, x.d.writeWithin)
	if err := x.write(w, c); err != nil {
		c.Close()
		x.booking.hold(nil)
		if c.Reused {
			return fmt.Errorf("%w: %w", conn.ErrStale, err)
		}
		return err
	}
	if err := x.awaitHead(w, c, a, now); err != nil {
		c.Close()
		x.booking.hold(nil)
		return err
	}
	return nil
}

// step is how long a wait for a worker lasts before the door looks around, and
// writes a heartbeat to a client whose stream is silent.
const step = 10 * time.Second

// awaitHead waits for the head of an answer: up to the first-byte limit, or for as
// long as the prompts there may take, and on while the worker makes progress on
// something.
func (x *exchange) awaitHead(w *fleet.Worker, c *conn.Conn, a *wire.Answer, began int64) error {
	now := began
	limit := int64(time.Duration(x.v.set.Door.Limits.FirstByte))
	for {
		c.ReadIn(now, x.d.step)
		err := c.Answer(a)
		if err == nil || !conn.TimedOut(err) {
			return err
		}
		now = x.d.now()
		v := x.d.ledger.View(w.Acct, now)
		if since := max(began, v.ProgressAt); now-since > max(limit, int64(fleet.Slower*v.PrefillSeconds*1e9)) {
			return err
		}
	}
}

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
	x.d.delist(x)
	if r.outcome == "" {
		r.outcome = outcomeOf(r.status)
	}
	x.tell()
	x.count()
	x.d.past.add(x)
	if x.v.set.Log.Access {
		x.d.logAccess(x.v, &x.asked, r)
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

// used is the tokens that the request's key is charged with in the end. Of an answer
// that does not say what it took, the prompt counts as it was estimated: several
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
	if k := x.asked.key; k != nil && x.v.keys.Configured(k.Name) == k { // a filter's keys are without bound
		r := &x.record
		x.d.metrics.EndedOf(k.Name, &metrics.Outcome{Word: r.outcome, Usage: r.usage, Generated: r.generated.Load()})
	}
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
