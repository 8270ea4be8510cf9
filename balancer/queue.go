package balancer

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/balancer/ledger"
)

// The priority classes, served strictly in this order.
const (
	priorityHigh = iota
	priorityNormal
	priorityLow
	priorities
)

var priorityNames = [...]string{"high", "normal", "low"}

func priorityOf(name string) (int, bool) {
	for i, n := range priorityNames {
		if n == name {
			return i, true
		}
	}
	return priorityNormal, false
}

// queue holds the requests of a pool that wait for room, or for a worker that
// has not enough to do. Classes are strict; within one, keys take turns by
// deficit round robin on tokens, so that a key with long prompts gets no more
// than its share. Of one key's the shorter go first, and the longer one has
// waited the shorter it counts.
type queue struct {
	mu      sync.Mutex
	classes [priorities]class
	n       atomic.Int32
}

// class is the flows of one priority.
type class struct {
	flows []*flow
	next  int
	n     int
}

// flow is what waits of one key.
type flow struct {
	key     string
	weight  float64
	deficit float64
	waiters []*waiter
}

// waiter is one request that waits.
type waiter struct {
	x       *exchange
	turn    float64    // its place among its key's
	granted chan grant // holds one
	gone    bool
}

type grant struct{ reason ledger.Reason }

// quantum is the tokens that a key of weight 1 may take in one turn.
const quantum = 2048

// add appends a request, unless the queue is full or the door ends.
func (q *queue) add(x *exchange, limit int) *waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	if int(q.n.Load()) >= limit {
		return nil
	}
	w := &waiter{x: x, granted: make(chan grant, 1), turn: x.d.ledger.Turn(&x.asked.pool.group, x.booking.ask.Prompt, x.d.now())}
	if x.resuming() {
		w.turn = math.Inf(-1) // someone is in the middle of its answer
	}
	c := &q.classes[x.asked.priority]
	name, weight := "", 1.0
	if x.asked.key != nil {
		name, weight = x.asked.key.name, float64(max(1, x.asked.key.cfg.Weight))
	}
	f := c.flow(name, weight)
	at := len(f.waiters)
	for at > 0 && f.waiters[at-1].turn > w.turn {
		at--
	}
	f.waiters = slices.Insert(f.waiters, at, w)
	c.n++
	q.n.Add(1)
	return w
}

func (c *class) flow(key string, weight float64) *flow {
	for _, f := range c.flows {
		if f.key == key {
			f.weight = weight
			return f
		}
	}
	f := &flow{key: key, weight: weight}
	c.flows = append(c.flows, f)
	return f
}

// remove takes a waiter out, whether it was granted meanwhile or not.
func (q *queue) remove(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.gone = true
	c := &q.classes[w.x.asked.priority]
	for i, f := range c.flows {
		for j, o := range f.waiters {
			if o == w {
				f.waiters = append(f.waiters[:j], f.waiters[j+1:]...)
				c.n--
				q.n.Add(-1)
				if len(f.waiters) == 0 {
					c.flows = append(c.flows[:i], c.flows[i+1:]...)
				}
				return
			}
		}
	}
}

// position returns a request's place in the queue, from 1; 0: it does not wait.
func (q *queue) position(x *exchange) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := 0
	for i := range q.classes {
		for _, f := range q.classes[i].flows {
			for j, w := range f.waiters {
				if w.x == x {
					return before + j*len(q.classes[i].flows) + 1
				}
			}
		}
		before += q.classes[i].n
	}
	return 0
}

// pump gives room to those who wait, as long as there is some.
func (p *pool) pump(d *Door) {
	q := &p.queue
	if q.n.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var kept []ledger.Try
	for i := range q.classes {
		if !q.classes[i].pump(q, p, d, &kept) {
			return
		}
	}
}

// pump serves one class and reports whether room may be left for the next. A
// request that no worker can take now, for reasons of its own (bound to one, or
// some tried), holds nobody else up; what becomes free at the workers that it may
// go to is kept for it from those behind it.
func (c *class) pump(q *queue, p *pool, d *Door, kept *[]ledger.Try) bool {
	stuck := 0
	for c.n > 0 && stuck < len(c.flows) {
		if c.next >= len(c.flows) {
			c.next = 0
		}
		f := c.flows[c.next]
		if f.deficit <= 0 {
			f.deficit += quantum * f.weight
			c.next++
			continue
		}
		served, full := f.serve(c, q, p, d, kept)
		if full {
			return false
		}
		if len(f.waiters) == 0 {
			c.flows = append(c.flows[:c.next], c.flows[c.next+1:]...)
			continue
		}
		if !served {
			stuck++
			c.next++
			continue
		}
		stuck = 0
	}
	return true
}

// serve places the first waiter of a flow that can be placed.
func (f *flow) serve(c *class, q *queue, p *pool, d *Door, kept *[]ledger.Try) (served, full bool) {
	for i, w := range f.waiters {
		x, tried := w.x, w.x.booking.ask.Tried
		x.booking.ask.Now = d.now()
		x.booking.ask.Tried = append(tried[:len(tried):len(tried)], *kept...)
		verdict, reason := x.pick()
		x.booking.ask.Tried = tried
		switch {
		case verdict == ledger.Full && !x.booking.bound && x.booking.ask.Spare == nil && len(tried) == 0:
			return false, true
		case verdict == ledger.Full:
			*kept = x.booking.mayGoTo(d.ledger, *p.workers.Load(), *kept)
			continue
		case verdict == ledger.None:
			continue
		}
		f.deficit -= float64(x.booking.ask.Prompt + x.booking.ask.Expect)
		f.waiters = append(f.waiters[:i], f.waiters[i+1:]...)
		c.n--
		q.n.Add(-1)
		w.granted <- grant{reason}
		return true, false
	}
	return false, false
}

// resuming reports whether the client is in the middle of its answer.
func (x *exchange) resuming() bool { return x.s != nil && x.s.answer.Resumed() }

// place finds a worker with room for the exchange and books it there; it waits
// for one where there is none.
func (x *exchange) place() *failure {
	p, d := x.asked.pool, x.d
	x.prepare()
	x.booking.ask.Eager = x.resuming() // someone is in the middle of its answer
	x.askPolicy()
	if p.queue.n.Load() == 0 || x.resuming() {
		verdict, reason := x.pick()
		if verdict == ledger.Picked {
			x.placed(reason)
			return nil
		}
		if x.booking.bound && x.booking.ask.Prefer.Generation(d.ledger) == 0 {
			return notFound("the worker that holds this response is not there any more")
		}
	}
	return x.wait()
}

// pick chooses a worker and books the request there. One under trial that has no
// room holds nobody up.
func (x *exchange) pick() (ledger.Verdict, ledger.Reason) {
	verdict, reason := x.d.ledger.Pick(&x.asked.pool.group, &x.booking.ask, &x.booking.charge)
	if verdict != ledger.Picked && x.booking.ask.Prefer != nil && !x.booking.bound {
		x.booking.ask.Prefer = nil
		verdict, reason = x.d.ledger.Pick(&x.asked.pool.group, &x.booking.ask, &x.booking.charge)
	}
	return verdict, reason
}

// placed enters what a choice decided. The worker may have left the pool since.
func (x *exchange) placed(reason ledger.Reason) {
	w := x.booking.charge.Worker().Of.(*worker)
	x.booking.arrive(w)
	x.record.worker = w.id
	x.booking.reason = reason
	x.booking.sentAt = x.booking.ask.Now
	x.d.metrics.decision(x.asked.pool, reason)
	x.d.peers.change()
	x.d.explain(x)
	if !w.own.Load() {
		// An engine that computes prompts as they come has this one in its cache before
		// it comes to the next.
		x.asked.pool.remember(&x.booking)
	}
}

// wait stands in the queue until there is room, the client leaves, or the
// time is over.
func (x *exchange) wait() *failure {
	p, d := x.asked.pool, x.d
	cfg := &x.v.set.Door.Queue
	limit, patience := cfg.MaxRequests, time.Duration(cfg.MaxWait)
	resuming := x.resuming()
	if resuming {
		// A stream that has begun is not refused for want of room in the queue.
		limit, patience = math.MaxInt32, time.Duration(x.v.set.Door.Limits.FirstByte)
	}
	began := d.now()
	wake := x.booking.awake()
	if wake == nil {
		return nil
	}
	w := p.queue.add(x, limit)
	if w == nil {
		if x.eagerly() {
			return nil
		}
		return &failure{status: 503, typ: "service_unavailable", code: "queue_full", reason: "full", retryAfter: p.patience(d),
			message: fmt.Sprintf("the queue of pool %q is full (%d requests)", p.name, cfg.MaxRequests)}
	}
	x.record.state.Store(phaseQueued)
	if resuming {
		x.record.state.Store(phaseParked)
	}
	p.pump(d)
	f := x.stand(w, wake, patience)
	x.record.queued += d.now() - began
	x.record.state.CompareAndSwap(phaseParked, phaseStreaming)
	return f
}

// stand waits for a grant. A stream that is parked sends its heartbeats
// meanwhile.
func (x *exchange) stand(w *waiter, wake chan struct{}, patience time.Duration) *failure {
	began, deadline := x.d.now(), time.NewTimer(patience)
	defer deadline.Stop()
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	for n := 1; ; n++ {
		select {
		case g := <-w.granted:
			return x.granted(g)
		case <-wake:
			return x.leave(w, nil)
		case <-deadline.C:
			if x.d.now()-began < x.asked.pool.gap.Load() { // its turn goes on, for minutes
				deadline.Reset(time.Second)
				n--
				continue
			}
			if f := x.leave(w, x.asked.pool.waitedTooLong(x.d, len(x.booking.tried), patience)); f == nil || !x.eagerly() {
				return f
			}
			return nil
		case <-beat.C:
			// A worker that died is known to be gone within a second; one that
			// is still there then is alive, and does not want this request.
			// Where every worker that is there has failed this very request, waiting
			// would not help.
			if n > 1 && len(x.booking.tried) > 0 && x.asked.pool.alive(x.d) && !x.asked.pool.others(x, nil) { // it is at none: pump alone writes its charge now
				return x.leave(w, workerFailed(x.asked.pool.name))
			}
			if n%max(1, int(x.d.step/time.Second)) == 0 && x.s != nil && !x.s.heartbeat() {
				x.booking.cancel(causeClient)
			}
		}
	}
}

// eagerly sends the request even to a worker at which it waits behind others: here
// it can wait no longer, or there is no room to.
func (x *exchange) eagerly() bool {
	x.booking.ask.Eager, x.booking.ask.AnyLength, x.booking.ask.Now = true, true, x.d.now()
	verdict, reason := x.d.ledger.Pick(&x.asked.pool.group, &x.booking.ask, &x.booking.charge)
	if verdict != ledger.Picked {
		return false
	}
	x.placed(reason)
	return true
}

func (x *exchange) granted(g grant) *failure {
	x.booking.awoken()
	x.placed(g.reason)
	return nil
}

// leave gives up waiting. A grant that came at the same moment is given back.
func (x *exchange) leave(w *waiter, f *failure) *failure {
	x.asked.pool.queue.remove(w)
	select {
	case g := <-w.granted:
		if f != nil {
			return x.granted(g) // just in time after all
		}
		x.release(ledger.Neutral)
	default:
	}
	x.booking.awoken()
	return f
}

func (p *pool) waitedTooLong(d *Door, tried int, patience time.Duration) *failure {
	if tried > 0 {
		return workerFailed(p.name)
	}
	if !p.alive(d) {
		return noWorker(p.name)
	}
	return &failure{status: 504, typ: "service_unavailable", code: "queue_timeout", reason: "wait", retryAfter: p.patience(d),
		message: fmt.Sprintf("no worker of pool %q had room within %v", p.name, patience)}
}

// patience guesses after how many seconds a refused client may come again:
// when a part of what waits will have been served.
func (p *pool) patience(d *Door) int {
	waiting := float64(p.queue.n.Load())
	rate := 0.0
	for _, w := range *p.workers.Load() {
		if v := d.ledger.View(w.acct, d.now()); v.Decode > 0 && v.InFlight > 0 {
			rate += v.Decode * float64(v.InFlight) / 256
		}
	}
	if rate == 0 {
		return 2
	}
	return int(math.Min(60, math.Max(1, waiting/rate/4)))
}
