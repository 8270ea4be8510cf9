package balancer

import (
	"errors"
	"sync"
	"sync/atomic"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/wait"
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

// booking is what a request holds at a worker: its charge, the connection, and
// what was tried before. The exchange's goroutine writes it; others read worker
// and call cancel and moveOn.
type booking struct {
	wait.Claim
	pinned   bool // bound, until its stream has begun
	own      bool // its present worker is one of ours
	hits     []int32
	chunks   []uint64 // prompt-chunk digests
	units    float64  // how many times ledger.ChunkBytes the prompt is
	items    items
	tried    []ledger.Try
	attempts int          // sent again for an answer of 429 or 5xx
	erred    []ledger.Try // that answered 5xx: who is to blame, the next answer says
	deaths   int          // of workers in a row that had it, without a token between
	reason   ledger.Reason
	came     int64 // when a worker was looked for, the first time
	sentAt   int64 // to the worker, the last time
	advance  int64 // tokens charged to the key before the answer has said

	mu     sync.Mutex
	up     *conn.Conn
	wake   chan struct{}                // closed by cancel while the exchange waits
	worker atomic.Pointer[fleet.Worker] // the last one
	there  bool                         // it is booked at worker
	why    atomic.Int32
}

// cancel tells an exchange that nobody waits for it any more.
func (b *booking) cancel(why cause) {
	b.why.Store(int32(why))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.up != nil {
		b.up.Conn.Close()
	}
	if b.wake != nil {
		close(b.wake)
		b.wake = nil
	}
}

// moveOn tells an exchange that is at a worker to go on elsewhere. It does
// nothing where the exchange waits or is at another worker by now: a failure of
// its previous worker must not move it.
func (b *booking) moveOn(from *fleet.Worker, why cause) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.there && b.worker.Load() == from && b.why.CompareAndSwap(0, int32(why)) && b.up != nil {
		b.up.Conn.Close()
	}
}

// arrive notes the worker that the exchange is booked at.
func (b *booking) arrive(w *fleet.Worker) {
	b.mu.Lock()
	b.worker.Store(w)
	b.there = true
	b.mu.Unlock()
}

// depart notes that the exchange is booked at no worker, and returns the
// connection to the last one. An order to move on is over with it.
func (b *booking) depart() (c *conn.Conn) {
	b.mu.Lock()
	c, b.up, b.there = b.up, nil, false
	b.mu.Unlock()
	b.why.CompareAndSwap(int32(causeDrain), 0)
	b.why.CompareAndSwap(int32(causeHung), 0)
	return c
}

// over reports whether nobody waits for the answer any more.
func (b *booking) over() bool {
	switch cause(b.why.Load()) {
	case causeClient, causeOperator, causeStop:
		return true
	}
	return false
}

// blame says what a failed attempt is to its worker, and by which word it is
// counted: one that drains is not to blame for what it is made to give up.
func (b *booking) blame(word string) (ledger.Outcome, string) {
	switch cause(b.why.Load()) {
	case causeDrain:
		return ledger.Neutral, "drain"
	case causeHung:
		return ledger.Failed, "hung"
	}
	return ledger.Failed, word
}

// hold names the connection that cancel must close.
func (b *booking) hold(c *conn.Conn) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up = c
	if c != nil && b.why.Load() != 0 {
		return errGone
	}
	return nil
}

// connection is the one to the present worker; nil: there is none.
func (b *booking) connection() *conn.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.up
}

// letGo is connection, which the booking then holds no longer.
func (b *booking) letGo() (c *conn.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, b.up = b.up, nil
	return c
}

// drop closes the connection to the worker, which tells it to stop.
func (b *booking) drop() {
	if c := b.letGo(); c != nil {
		c.Close()
	}
}

// keep puts the connection back for the next request.
func (b *booking) keep(now int64) {
	if c := b.letGo(); c != nil {
		c.Put(now)
	}
}

// awake makes the channel that cancel closes; nil where it is too late.
func (b *booking) awake() chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over() {
		return nil
	}
	b.wake = make(chan struct{})
	return b.wake
}

// awoken notes that the wait is over.
func (b *booking) awoken() {
	b.mu.Lock()
	b.wake = nil
	b.mu.Unlock()
}
