package fleet

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/ledger"
)

// Worker is one worker as the door treats it. It lives as long as the worker
// set names it, through all its generations.
type Worker struct {
	ID     string // pool/name
	Pool   *Pool
	Slot   int // its bit in the pool's prefix table
	Acct   *ledger.Worker
	Strict atomic.Bool // it forbids return_token_ids
	Own    atomic.Bool // ours: it has a status stream and takes roundhouse_resume; as it was found, whatever the set says

	Up     atomic.Pointer[conn.Upstream]
	APIKey atomic.Pointer[string]
	models atomic.Pointer[[]string]
	takes  atomic.Pointer[[]string] // modalities of prompts, as it says; nil: it says nothing
	MaxLen atomic.Int64             // of a scraped worker: the longest context it serves

	capacity atomic.Int64 // of its KV, in tokens; 0: unknown
	Hits     ledger.Hits  // of a scraped worker, what its counters say of its cache
	believes atomic.Int64 // the chunks that the prefix table believes of it at most
	silence  silence
	aside    aside

	mu       sync.Mutex
	cfg      control.Worker
	reached  bool   // it has answered in this generation
	ending   bool   // its process takes nothing in any more
	fault    string // why it has not, as far as is known
	local    uint64 // generations that only this door has seen (a static worker restarted)
	identity string // what the worker says tells its process from the last
	state    phase.Phase
	reason   string
	since    time.Time
	ends     drainEnd
	forced   bool // its drain is over, and what was left was moved

	cancel context.CancelFunc // ends its reader
	done   chan struct{}
}

// Generation is what the ledger knows this worker's process by.
func (w *Worker) Generation() uint64 { return w.cfg.Generation<<16 + w.local + 1 }

// ModelList is the models that the worker says it serves.
func (w *Worker) ModelList() []string {
	if m := w.models.Load(); m != nil {
		return *m
	}
	return nil
}

// Instance tells one process behind a worker's name from the next one.
type Instance struct {
	Generation uint64 // by the worker set
	Known      uint64 // by the ledger
	Identity   string // by what it says itself; empty: it has said nothing
}

// Instance is the worker's present process.
func (w *Worker) Instance() Instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Instance{w.cfg.Generation, w.Generation(), w.identity}
}

// Expect notes which process another door has met of a generation, so that any
// other one is then known to be another. It reports whether the generation is the
// present one.
func (w *Worker) Expect(generation uint64, identity string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if generation == w.cfg.Generation && w.identity == "" {
		w.identity = identity
	}
	return generation == w.cfg.Generation
}

// Listens is where the worker's process of a generation listens.
func (w *Worker) Listens() (up *conn.Upstream, generation uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Up.Load(), w.cfg.Generation
}

// Config is the worker as the set in force has it.
func (w *Worker) Config() control.Worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cfg
}

// apply takes what the supervisor wants of the worker, and its address where that is
// another.
func (w *Worker) apply(f *Fleet, cfg control.Worker, up *conn.Upstream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.Up.Load()
	own := cfg.Kind == "roundhouse"
	fresh := old == nil || cfg.URL != w.cfg.URL || cfg.Generation != w.cfg.Generation || cfg.Kind != w.cfg.Kind && own != w.Own.Load()
	if fresh {
		w.Own.Store(own)
		w.Up.Store(up)
		if old != nil {
			old.Retire()
		}
		w.reached, w.ending, w.fault, w.local, w.identity = false, false, "", 0, ""
		w.forget()
		if w.Pool.Adapters() != nil {
			w.models.Store(nil) // a process that starts has no adapters yet
		}
	}
	w.APIKey.Store(&cfg.APIKey)
	if cfg.State != phase.Draining {
		w.forced = false
	}
	w.ends.take(cfg.Deadline, time.Now(), f.now())
	w.cfg = cfg
	w.update(f)
	if fresh {
		w.restart(f)
	}
}

// update tells the ledger whether the worker may be used. w.mu is held.
func (w *Worker) update(f *Fleet) {
	ready := w.cfg.State == phase.Ready && w.reached && !w.ending
	f.ledger.SetWorker(w.Acct, w.Generation(), ready, w.cfg.KVTokens, f.now())
	state, reason := w.cfg.State, w.cfg.Reason
	if state == phase.Ready && w.reached && w.ending {
		state, reason = phase.Unreachable, "its process is ending and takes nothing in any more"
	}
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
func (w *Worker) unanswered(f *Fleet, err error) {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err // without the URL, which stands beside it
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reached {
		w.fault = err.Error()
		w.update(f)
	}
}

// reachedNow notes an answer from the worker. identity tells its process from
// another; a new one begins a generation of its own.
func (w *Worker) reachedNow(f *Fleet, identity string) {
	w.mu.Lock()
	changed := !w.reached
	if identity != "" && identity != w.identity {
		if w.identity != "" {
			w.local++
			w.forget()
		}
		w.identity, w.ending = identity, false
		changed = true
	}
	w.reached, w.fault = true, ""
	if changed {
		w.update(f)
	}
	w.mu.Unlock()
	if changed {
		f.ledger.Recover(w.Acct, f.now())
		w.Pool.Pump(f)
	}
}

// restart starts the reader of the worker's reports anew. w.mu is held.
func (w *Worker) restart(f *Fleet) {
	w.stopReader()
	ctx, cancel := context.WithCancel(f.ctx)
	w.cancel, w.done = cancel, make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		for ctx.Err() == nil {
			if w.Own.Load() {
				w.followStatus(ctx, f)
			} else {
				w.scrape(ctx, f)
			}
		}
	}(w.done)
}

// turnsOut enters that a worker is one of ours, or is not, other than it was
// taken for: behind its address stands another process, or a worker that the
// set knows nothing of but its address.
func (w *Worker) turnsOut(f *Fleet, own bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Own.Swap(own) == own {
		return
	}
	if w.reached {
		w.local++
		w.forget()
	}
	w.identity = ""
	w.update(f)
	f.log.Info("a worker is of another kind than it was taken for", "worker", w.ID, "ours", own)
}

// stopReader ends the reader without waiting for it.
func (w *Worker) stopReader() {
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

// forget drops what is believed of the worker's cache.
func (w *Worker) forget() {
	if t := w.Pool.Prefix.Load(); t != nil {
		t.Forget(w.Slot)
	}
	w.Hits.Forget()
	w.aside.forget()
}

// unasked reports whether the worker is ready, and has neither answered this door nor failed to.
func (w *Worker) unasked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cfg.State == phase.Ready && !w.reached && w.fault == "" && len(w.ModelList()) == 0
}

// modalities are what a prompt may hold; nil where the worker does not say.
func (w *Worker) modalities() []string {
	if m := w.takes.Load(); m != nil {
		return *m
	}
	return nil
}

// setModels notes which models a worker serves, and what it says of their prompts.
func (w *Worker) setModels(f *Fleet, models, modalities []string) {
	if !slices.Equal(w.modalities(), modalities) {
		w.takes.Store(&modalities)
	}
	old := w.ModelList()
	same := len(old) == len(models)
	for i := 0; same && i < len(models); i++ {
		same = old[i] == models[i]
	}
	if same {
		return
	}
	w.models.Store(&models)
	f.Remap()
}

// State is the worker as the private socket shows it.
func (w *Worker) State(f *Fleet) control.WorkerState {
	v := f.ledger.Account(w.Acct, f.now())
	w.mu.Lock()
	s := control.WorkerState{
		ID: w.ID, Generation: w.cfg.Generation, State: w.state, Reason: w.reason, Since: w.since, Reached: w.reached,
		Models: w.ModelList(), Modalities: w.modalities(),
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
	_, hung := f.patience(&v, w.Own.Load(), time.Duration(f.FirstByte.Load()))
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
		old := float64(f.now()-v.OldestSent) / 1e9
		s.Requests.OldestSeconds = &old
	}
	w.aside.show(&s)
	s.Served, s.Failed, s.Tokens, s.TTFTSeconds, s.TokensPerSecond = v.Served, v.Failed, v.Tokens, v.TTFT, v.Decode
	return s
}
