package balancer

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/balancer/extend"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/wire"
)

// cause says why an exchange was told to stop.
type cause int32

const (
	causeNone     cause = iota
	causeClient         // the client has left
	causeOperator       // DELETE /api/requests/{id}
	causeDrain          // its worker's drain is over: go on elsewhere
	causeStop           // the door ends
	causeHung           // its worker makes no progress: go on elsewhere
)

// errGone says that nobody waits for the answer any more.
var errGone = errors.New("the request was cancelled")

// exchange is one request from its acceptance to its end. It belongs to one
// goroutine; others may only call cancel and look at what is atomic.
type exchange struct {
	d      *Door
	v      *view
	g      *guard
	id     string
	wall   time.Time
	start  int64 // by the door's clock
	method string
	path   string
	query  string
	kind   kind
	ctype  string // of a body that is not JSON
	accept string
	own    bool // its present worker is one of ours
	http10 bool
	close  bool // the connection ends with the answer

	body     []byte
	lent     *[]byte // what of bodies it lies in, if it does
	booked   int64   // memory booked for body
	spare    atomic.Pointer[spare]
	peek     wire.Peek
	key      *key
	charged  int64 // tokens charged to the key in advance
	priority int
	route    *route
	target   *target
	pool     *pool
	model    string // as it is sent to the worker
	session  string

	charge   ledger.Charge
	bound    bool // only ask.Prefer can serve it
	ask      ledger.Ask
	hits     []int32
	tried    []ledger.Try
	attempts int // sent again for an answer of 429 or 5xx
	reason   ledger.Reason
	queued   int64 // nanoseconds spent waiting for room
	came     int64 // when a worker was looked for, the first time
	sentAt   int64 // to the worker, the last time
	overhead int64 // the door's own time before the request was sent

	mu        sync.Mutex
	up        *upConn
	wake      chan struct{}          // closed by cancel while the exchange waits
	worker    atomic.Pointer[worker] // the last one
	there     bool                   // it is booked at worker
	why       atomic.Int32
	state     atomic.Int32 // of phases
	resume    int          // how often the stream went on at another worker
	resumeFor string

	generated atomic.Int64 // tokens relayed, for the in-flight list

	status  int
	outcome string
	usage   usage
	whole   int64 // when an answer that does not stream had come
	first   int64 // when the first event or answer was relayed
	s       *stream
	series  *series
	chunks  []uint64     // prompt-chunk digests
	pass    *extend.Pass // its way through the filters; nil: there are none
	trace   *trace       // nil: traces are not sent
	out     direct       // where the door has read the request itself
	shown   atomic.Bool  // others may hold it still when it has ended
}

// The phases of an exchange, as the in-flight list shows them.
const (
	phaseQueued int32 = iota
	phaseSent
	phaseStreaming
	phaseParked
)

var phaseNames = [...]string{"queued", "sent", "streaming", "parked"}

// usage is what an answer says it took.
type usage struct {
	prompt, cached, generated int64
	known                     bool
}

// cancel tells an exchange that nobody waits for it any more.
func (x *exchange) cancel(why cause) {
	x.why.Store(int32(why))
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.up != nil {
		x.up.Conn.Close()
	}
	if x.wake != nil {
		close(x.wake)
		x.wake = nil
	}
}

// moveOn tells an exchange that is at a worker to go on elsewhere. One that waits,
// or is at another worker by now, is not told: what befell the one that it left
// says nothing of the next.
func (x *exchange) moveOn(from *worker, why cause) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.there && x.worker.Load() == from && x.why.CompareAndSwap(0, int32(why)) && x.up != nil {
		x.up.Conn.Close()
	}
}

// arrive notes which worker the exchange is booked at.
func (x *exchange) arrive(w *worker) {
	x.mu.Lock()
	x.worker.Store(w)
	x.there = true
	x.mu.Unlock()
}

// depart notes that it is booked at none, and returns the connection to the last
// one. Why it was told to move on is over with it.
func (x *exchange) depart() (c *upConn) {
	x.mu.Lock()
	c, x.up, x.there = x.up, nil, false
	x.mu.Unlock()
	x.why.CompareAndSwap(int32(causeDrain), 0)
	x.why.CompareAndSwap(int32(causeHung), 0)
	return c
}

// over reports whether nobody waits for the answer any more.
func (x *exchange) over() bool {
	switch cause(x.why.Load()) {
	case causeClient, causeOperator, causeStop:
		return true
	}
	return false
}

// hold names the connection that cancel must close.
func (x *exchange) hold(c *upConn) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.up = c
	if c != nil && x.why.Load() != 0 {
		return errGone
	}
	return nil
}

// open finds a worker and sends it the request, again elsewhere where one
// fails, until the head of an answer is there. Then x.up holds the connection
// just behind that head, and the charge is live.
func (x *exchange) open(a *wire.Answer) *failure {
	for {
		if x.over() {
			return nil
		}
		if f := x.place(); f != nil || x.over() {
			return f
		}
		w := x.worker.Load()
		err := x.send(w, a, false)
		if errors.Is(err, errStale) {
			err = x.send(w, a, true)
		}
		if x.over() {
			return nil
		}
		if err != nil {
			how, why := x.blame(retryReason(err))
			x.d.log.Warn("worker failed a request", "request", x.id, "worker", w.id, "reason", why, "error", err.Error())
			x.lost(how, why)
			x.d.suspect(w, err)
			continue
		}
		if again, how := x.refusedBy(a); again {
			x.lost(how, fmt.Sprintf("status_%d", a.Status))
			continue
		}
		return nil
	}
}

// blame says what a failed attempt is to its worker, and by which word it is
// counted: one that drains is not to blame for what it is made to give up.
func (x *exchange) blame(word string) (ledger.Outcome, string) {
	switch cause(x.why.Load()) {
	case causeDrain:
		return ledger.Neutral, "drain"
	case causeHung:
		return ledger.Failed, "hung"
	}
	return ledger.Failed, word
}

func retryReason(err error) string {
	if timedOut(err) {
		return "timeout"
	}
	return "connection"
}

// refusedBy reports whether an answer is a refusal that another worker may
// not give.
func (x *exchange) refusedBy(a *wire.Answer) (bool, ledger.Outcome) {
	how := ledger.Failed
	switch {
	case a.Status == 429 || a.Status == 503:
		how = ledger.Busy
	case a.Status < 500 || a.Status == 501 || a.Status == 505:
		return false, ledger.Neutral
	}
	cfg := &x.v.set.Door.Retry
	if x.attempts >= cfg.Attempts || !x.pool.others(x) || !x.pool.spend(cfg.Budget) {
		return false, how
	}
	x.attempts++
	return true, how
}

// send writes the request to a worker and reads the head of its answer.
func (x *exchange) send(w *worker, a *wire.Answer, fresh bool) error {
	now := x.d.now()
	c, err := w.up.Load().get(fresh, now)
	if err != nil {
		return err
	}
	if err := x.hold(c); err != nil {
		c.close()
		return err
	}
	x.state.CompareAndSwap(phaseQueued, phaseSent)
	if x.overhead == 0 {
		x.overhead = now - x.start - x.queued
	}
	c.writeIn(now, writeWithin)
	if err := x.write(w, c); err != nil {
		c.close()
		x.hold(nil)
		if c.reused {
			return errStale
		}
		return err
	}
	if err := x.awaitHead(w, c, a, now); err != nil {
		c.close()
		x.hold(nil)
		return err
	}
	return nil
}

// step is how long a wait for a worker lasts before the door looks around, and
// writes a heartbeat to a client whose stream is silent.
const step = 10 * time.Second

// awaitHead waits for the head of an answer: up to the first-byte limit, and on
// while the worker makes progress on something.
func (x *exchange) awaitHead(w *worker, c *upConn, a *wire.Answer, began int64) error {
	now := began
	limit := int64(time.Duration(x.v.set.Door.Limits.FirstByte))
	for {
		c.readIn(now, x.d.step)
		err := c.answer(a)
		if err == nil || !timedOut(err) {
			return err
		}
		now = x.d.now()
		v := x.d.ledger.View(w.acct, now)
		if since := max(began, v.ProgressAt); now-since > limit {
			return err
		}
	}
}

// lost gives the charge back after a worker failed, and leaves that worker
// out from now on.
func (x *exchange) lost(how ledger.Outcome, reason string) {
	x.tried = append(x.tried, x.charge.Try())
	x.d.metrics.retries.WithLabelValues(x.pool.name, reason).Inc()
	if c := x.depart(); c != nil {
		c.close()
	}
	x.release(how)
}

// drop closes the connection to the worker, which tells it to stop.
func (x *exchange) drop() {
	x.mu.Lock()
	c := x.up
	x.up = nil
	x.mu.Unlock()
	if c != nil {
		c.close()
	}
}

// keep puts the connection back for the next request.
func (x *exchange) keep(now int64) {
	x.mu.Lock()
	c := x.up
	x.up = nil
	x.mu.Unlock()
	if c != nil {
		c.put(now)
	}
}

// release gives the charge back, and lets the queue look for room.
func (x *exchange) release(how ledger.Outcome) { x.releaseAt(how, x.d.now()) }

func (x *exchange) releaseAt(how ledger.Outcome, now int64) {
	if x.d.ledger.Release(&x.charge, how, now) {
		x.pool.pump(x.d)
	}
}
