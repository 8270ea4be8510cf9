package fleet

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/ledger"
	"roundhouse/worker/api"
)

// Fleet is the workers as one door keeps them: it reads their reports, books
// them in the ledger, and finds those that compute nothing.
type Fleet struct {
	ID        string // the door's
	log       *slog.Logger
	epoch     time.Time // the door's clock begins here
	ctx       context.Context
	ledger    *ledger.Ledger
	errands   *http.Client // for what the door asks of workers on its own account
	wg        sync.WaitGroup
	HungAfter time.Duration
	said      said
	FirstByte atomic.Int64  // how long an answer may take to begin
	Due       chan struct{} // holds one: LookSoon was called
	met       atomic.Int64  // workers so far

	Remap    func()                                               // a worker serves other models now
	MoveAway func(w *Worker, hung bool)                           // its requests must go on elsewhere
	Resident func(doors map[string]api.DoorStatus) (tokens int64) // of the doors that this one hears of
}

// Start makes the fleet of a door. Its hooks are still to be set.
func (f *Fleet) Start(ctx context.Context, id string, log *slog.Logger, epoch time.Time, l *ledger.Ledger) {
	f.ctx, f.ID, f.log, f.epoch, f.ledger, f.HungAfter = ctx, id, log, epoch, l, hungAfter
	f.Due = make(chan struct{}, 1)
	f.errands = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: conn.IdleFor, DisableCompression: true}}
}

// now is the door's clock: nanoseconds, monotonic, never 0.
func (f *Fleet) now() int64 { return int64(time.Since(f.epoch)) }

// Suspect takes a worker out that refuses connections: it is dead. Its next
// answer re-admits it.
func (f *Fleet) Suspect(w *Worker, err error) {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		w.mu.Lock()
		w.reached = false
		w.update(f)
		w.mu.Unlock()
	}
}

// LookSoon has the door look for what is due before the next beat: requests wait, or what
// it serves is other than it was.
func (f *Fleet) LookSoon() {
	select {
	case f.Due <- struct{}{}:
	default:
	}
}

// EverySecond does for the workers what is due by time alone.
func (f *Fleet) EverySecond(workers []*Worker) {
	for _, w := range workers {
		w.Up.Load().Sweep(f.now())
		f.watchDrain(w)
		f.watchProgress(w)
	}
}

// watchDrain moves the requests that are left at a worker whose drain is over.
func (f *Fleet) watchDrain(w *Worker) {
	w.mu.Lock()
	due := w.cfg.State == phase.Draining && w.ends.over(f.now()) && !w.forced
	if due {
		w.forced = true
	}
	w.mu.Unlock()
	if due {
		f.MoveAway(w, false)
	}
}

// Retire ends what the door does for a worker that the set no longer names.
func (f *Fleet) Retire(w *Worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopReader()
	if up := w.Up.Load(); up != nil {
		up.Retire()
	}
	f.ledger.SetWorker(w.Acct, w.Generation(), false, 0, f.now())
}

// End stops the readers of workers, and waits for them and for all errands.
func (f *Fleet) End(workers []*Worker) {
	for _, w := range workers {
		w.mu.Lock()
		done := w.done
		w.stopReader()
		w.mu.Unlock()
		if done != nil {
			<-done
		}
		w.Up.Load().Retire()
	}
	f.wg.Wait()
	f.errands.CloseIdleConnections()
}
