package balancer

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/ledger"
)

// worker is one worker as the door treats it. It lives as long as the worker
// set names it, through all its generations.
type worker struct {
	id     string // pool/name
	pool   *pool
	slot   int // its bit in the pool's prefix table
	acct   *ledger.Worker
	strict atomic.Bool // it forbids return_token_ids
	own    atomic.Bool // ours: it has a status stream and takes roundhouse_resume; as it was found, whatever the set says

	up     atomic.Pointer[upstream]
	apiKey atomic.Pointer[string]
	models atomic.Pointer[[]string]
	maxLen atomic.Int64 // of a scraped worker: the longest context it serves

	capacity atomic.Int64 // of its KV, in tokens; 0: unknown
	hits     hits         // of a scraped worker, what its counters say of its cache
	believes atomic.Int64 // the chunks that the prefix table believes of it at most
	silence  silence

	mu       sync.Mutex
	cfg      control.Worker
	reached  bool   // it has answered in this generation
	fault    string // why it has not, as far as is known
	local    uint64 // generations that only this door has seen (a static worker restarted)
	identity string // what the worker says tells its process from the last
	state    phase.Phase
	reason   string
	since    time.Time
	forced   bool // its drain is over, and what was left was moved

	cancel context.CancelFunc // ends its reader
	done   chan struct{}
}

// generation is what the ledger knows this worker's process by.
func (w *worker) generation() uint64 { return w.cfg.Generation<<16 + w.local + 1 }

func (w *worker) modelList() []string {
	if m := w.models.Load(); m != nil {
		return *m
	}
	return nil
}

// apply takes what the supervisor wants of the worker, and its address where that is
// another.
func (w *worker) apply(d *Door, cfg control.Worker, up *upstream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.up.Load()
	own := cfg.Kind == "roundhouse"
	fresh := old == nil || cfg.URL != w.cfg.URL || cfg.Generation != w.cfg.Generation || cfg.Kind != w.cfg.Kind && own != w.own.Load()
	if fresh {
		w.own.Store(own)
		w.up.Store(up)
		if old != nil {
			old.retire()
		}
		w.reached, w.fault, w.local, w.identity = false, "", 0, ""
		w.forget()
	}
	w.apiKey.Store(&cfg.APIKey)
	if cfg.State != phase.Draining {
		w.forced = false
	}
	w.cfg = cfg
	w.update(d)
	if fresh {
		w.restart(d)
	}
}

// update tells the ledger whether the worker may be used. w.mu is held.
func (w *worker) update(d *Door) {
	ready := w.cfg.State == phase.Ready && w.reached
	d.ledger.SetWorker(w.acct, w.generation(), ready, w.cfg.KVTokens, d.now())
	state, reason := w.cfg.State, w.cfg.Reason
	if state == phase.Ready && !w.reached {
		state, reason = phase.Unreachable, "this door has had no answer from it yet"
		if w.fault != "" {
			reason += ": " + w.fault
		}
		if w.state == state {
			w.reason = reason // it is so since it began, whatever is known of it by now
		}
	}
	if state != w.state || reason != w.reason {
		w.state, w.reason, w.since = state, reason, time.Now()
	}
}

// unanswered notes why a worker has not answered, for those who look at it.
func (w *worker) unanswered(d *Door, err error) {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err // without the URL, which stands beside it
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reached {
		w.fault = err.Error()
		w.update(d)
	}
}

// reachedNow notes an answer from the worker. identity tells its process from
// another; a new one begins a generation of its own.
func (w *worker) reachedNow(d *Door, identity string) {
	w.mu.Lock()
	changed := !w.reached
	if identity != "" && identity != w.identity {
		if w.identity != "" {
			w.local++
			w.forget()
		}
		w.identity = identity
		changed = true
	}
	w.reached, w.fault = true, ""
	if changed {
		w.update(d)
	}
	w.mu.Unlock()
	if changed {
		d.ledger.Recover(w.acct, d.now())
		w.pool.pump(d)
	}
}

// restart starts the reader of the worker's reports anew. w.mu is held.
func (w *worker) restart(d *Door) {
	w.stopReader()
	ctx, cancel := context.WithCancel(d.ctx)
	w.cancel, w.done = cancel, make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		for ctx.Err() == nil {
			if w.own.Load() {
				w.followStatus(ctx, d)
			} else {
				w.scrape(ctx, d)
			}
		}
	}(w.done)
}

// turnsOut enters that a worker is one of ours, or is not, other than it was
// taken for: behind its address stands another process, or a worker that the
// set knows nothing of but its address.
func (w *worker) turnsOut(d *Door, own bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.own.Swap(own) == own {
		return
	}
	if w.reached {
		w.local++
		w.forget()
	}
	w.identity = ""
	w.update(d)
	d.log.Info("a worker is of another kind than it was taken for", "worker", w.id, "ours", own)
}

// stopReader ends the reader without waiting for it.
func (w *worker) stopReader() {
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

// forget drops what is believed of the worker's cache.
func (w *worker) forget() {
	if t := w.pool.prefix.Load(); t != nil {
		t.Forget(w.slot)
	}
	w.hits.forget()
}

// setModels notes which models a worker serves.
func (w *worker) setModels(d *Door, models []string) {
	old := w.modelList()
	same := len(old) == len(models)
	for i := 0; same && i < len(models); i++ {
		same = old[i] == models[i]
	}
	if same {
		return
	}
	w.models.Store(&models)
	d.remap()
}

// view is the worker as the private socket shows it.
func (w *worker) view(d *Door) control.WorkerState {
	v := d.ledger.View(w.acct, d.now())
	w.mu.Lock()
	s := control.WorkerState{
		ID: w.id, Generation: w.cfg.Generation, State: w.state, Reason: w.reason, Since: w.since, Reached: w.reached,
		Models: w.modelList(),
	}
	w.mu.Unlock()
	switch {
	case s.State == phase.Draining && v.InFlight == 0:
		s.State = phase.Drained
	case s.State == phase.Ready && v.Ejected != "" && v.Ejected != "busy":
		s.State, s.Reason = phase.Ejected, v.Ejected
	}
	if s.Models == nil {
		s.Models = []string{}
	}
	_, hung := d.patience(&v, w.own.Load(), d.firstByte())
	s.PatienceSeconds = hung.Seconds()
	s.KV = control.KV{ChargedTokens: v.KV, ForeignTokens: v.Foreign, ElsewhereTokens: v.Elsewhere.KV}
	if v.Capacity > 0 {
		s.KV.CapacityTokens = &v.Capacity
		usage := float64(v.KV+v.Elsewhere.KV+v.Foreign) / float64(v.Capacity)
		s.KV.Usage = &usage
	}
	if v.Reported >= 0 {
		s.KV.ReportedTokens = &v.Reported
	}
	if v.ReportAge >= 0 {
		age := float64(v.ReportAge) / 1e9
		s.KV.ReportAgeSeconds = &age
	}
	s.Requests.InFlight, s.Requests.Elsewhere = v.InFlight, v.Elsewhere.InFlight
	if v.Running >= 0 {
		s.Requests.Running = &v.Running
	}
	if v.Waiting >= 0 {
		s.Requests.Waiting = &v.Waiting
	}
	if v.PrefillTotal >= 0 {
		s.Requests.PrefillTokens = &v.PrefillTotal
	}
	if v.OldestSent > 0 {
		old := float64(d.now()-v.OldestSent) / 1e9
		s.Requests.OldestSeconds = &old
	}
	s.Served, s.Failed, s.Tokens, s.TTFTSeconds, s.TokensPerSecond = v.Served, v.Failed, v.Tokens, v.TTFT, v.Decode
	return s
}
