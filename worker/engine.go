package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"roundhouse/kernels"
	"roundhouse/worker/kv"
)

// Config is what an engine is made from.
type Config struct {
	Exec        kernels.Executable
	Groups      []kv.Group
	KVTokens    int // that the groups hold, where none keeps every token; 0: as many as the first one's blocks
	PrefixCache bool
	HashKey     kv.Key // of the prefix cache, drawn at random
	Limits      Limits
	MaxModelLen int
	Vocab       int
	EOS         []int32
	Models      []string      // as clients call it, for the status report
	Generation  string        // drawn at random when the process starts
	Pace        time.Duration // test-only: the least time a step takes
	NGram       NGram         // speculation; zero: none
	Adapters    AdapterSlots
	Memory      Memory // what Sleep gives back; nil: nothing can be
	Tower       *Tower // what it sees with; nil: it sees nothing
}

// Engine owns a model's executable, its KV cache and every sequence. One
// goroutine, Run, touches them; all else talks to it through posted functions.
type Engine struct {
	cfg   Config
	cache *kv.Cache
	sched *Scheduler
	stats *Stats
	feed  feed
	doors *doors

	adapters adapters
	live     map[*request]struct{}
	pooling  []*pooled // texts that wait for a row, first come first
	step     kernels.Step
	result   kernels.Result
	rows     []rowRef
	last     time.Time
	paused   bool
	pausing  pausing
	asleep   int // the level of sleep; 0: awake
	timings  stepTimes
	past     recentSteps
	watch    func(*Watched) // told each step; nil: nobody watches
	sight    sight

	mu       sync.Mutex
	posted   []func()
	wake     chan struct{} // holds one when something was posted
	closed   error         // why nothing is taken in any more
	draining bool
	pins     int // answers that take several requests
	done     chan struct{}
}

// request is a Request on its way.
type request struct {
	Request
	choices []*Sequence
	stream  *Stream
	left    int // choices that have not ended
	times   requestTimes
	cached  int
	prompt  []PromptRow
	rows    []*rowEntry // of its items; nil until all are there
}

// ErrClosed is returned for a request that comes when the engine has stopped
// or is about to.
var ErrClosed = errors.New("the engine is shutting down")

// NewEngine makes an engine; Run starts it.
func NewEngine(cfg Config) *Engine {
	pool := kv.New(kv.Options{Groups: cfg.Groups, PrefixCache: cfg.PrefixCache, Tokens: cfg.KVTokens, Key: cfg.HashKey})
	if pool.CapacityTokens() < cfg.MaxModelLen {
		panic(fmt.Sprintf("BUG: a cache of %d tokens for sequences of %d", pool.CapacityTokens(), cfg.MaxModelLen))
	}
	s := sight{tower: cfg.Tower}
	if cfg.Tower != nil {
		s.cache.budget = cfg.Tower.Budget
	}
	return &Engine{
		cfg: cfg, sight: s, cache: pool, adapters: adapters{slots: make([]*Adapter, cfg.Adapters.Count)}, sched: NewScheduler(pool, cfg.Limits), stats: newStats(cfg.MaxModelLen),
		feed: newFeed(), doors: newDoors(), live: map[*request]struct{}{},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// Config is what the engine was made from.
func (e *Engine) Config() Config { return e.cfg }

// Run schedules, computes and commits, step after step, until ctx ends or the
// backend fails. Whatever is under way then is aborted.
func (e *Engine) Run(ctx context.Context) (err error) {
	defer close(e.done)
	defer func() { e.close(err) }()
	for {
		e.takePosted()
		e.settle()
		if ctx.Err() != nil {
			return nil
		}
		worked, err := e.runStep(ctx)
		if err != nil {
			return fmt.Errorf("the backend failed: %w", err)
		}
		if worked {
			e.publish(false)
			continue
		}
		e.publish(true)
		select {
		case <-e.wake:
		case <-ctx.Done():
		}
	}
}

// Done is closed when Run has returned.
func (e *Engine) Done() <-chan struct{} { return e.done }

// close ends all requests and refuses new ones.
func (e *Engine) close(err error) {
	if err == nil {
		err = ErrClosed
	}
	e.mu.Lock()
	e.closed = err
	e.mu.Unlock()
	e.takePosted() // what came before the door was shut
	e.letIn()
	e.failPooling(err)
	for r := range e.live {
		for c := range r.choices {
			e.endWith(r, c, Event{Choice: c, Token: -1, Finish: FinishError, StopID: -1, Err: err})
		}
	}
	e.publish(true)
}

// post has f run by the engine's goroutine between two steps. After the
// engine's end it does nothing and says false.
func (e *Engine) post(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed != nil {
		return false
	}
	e.posted = append(e.posted, f)
	select {
	case e.wake <- struct{}{}:
	default:
	}
	return true
}

// call is post, and waits until f has run. It says false when it did not.
func (e *Engine) call(ctx context.Context, f func()) bool {
	ran := make(chan struct{})
	if !e.post(func() { f(); close(ran) }) {
		return false
	}
	select {
	case <-ran:
		return true
	case <-e.done:
		select {
		case <-ran:
			return true
		default:
			return false
		}
	case <-ctx.Done():
		return false
	}
}

func (e *Engine) takePosted() {
	e.mu.Lock()
	posted := e.posted
	e.posted = nil
	e.mu.Unlock()
	for _, f := range posted {
		f()
	}
}

// Drain refuses new requests from now on; those under way go on.
func (e *Engine) Drain() {
	e.mu.Lock()
	e.draining = true
	e.mu.Unlock()
	e.post(func() {})
}

// Err says why the engine takes nothing in any more; nil while it does.
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed != nil {
		return e.closed
	}
	if e.draining {
		return ErrClosed
	}
	return nil
}

// Failed is the error that stopped the engine; nil while it runs or was
// stopped on purpose.
func (e *Engine) Failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if errors.Is(e.closed, ErrClosed) {
		return nil
	}
	return e.closed
}

// Submit takes a request in. Its stream is to be closed by the caller.
func (e *Engine) Submit(req Request) (*Stream, error) {
	if err := e.Err(); err != nil {
		return nil, err
	}
	return e.submit(req)
}

// submit takes a request in, also while nothing new is.
func (e *Engine) submit(req Request) (*Stream, error) {
	if n := len(req.Tokens); n == 0 || n+len(req.Resume) > e.cfg.MaxModelLen || req.Params.N < 1 {
		return nil, fmt.Errorf("a prompt of %d tokens with %d generated does not fit a context of %d", n, len(req.Resume), e.cfg.MaxModelLen)
	}
	if err := e.sight.checkItems(&req); err != nil {
		return nil, err
	}
	r := &request{Request: req, left: req.Params.N, times: requestTimes{arrived: time.Now()}}
	r.stream = &Stream{engine: e, req: r, ready: make(chan struct{}, 1)}
	for c := range req.Params.N {
		q, err := e.newSequence(r, c)
		if err != nil {
			return nil, err
		}
		r.choices = append(r.choices, q)
	}
	if !e.post(func() { e.admit(r) }) {
		return nil, ErrClosed
	}
	return r.stream, nil
}

// Pin begins such an answer. It is to be released by the caller.
func (e *Engine) Pin() (*Pin, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed != nil:
		return nil, e.closed
	case e.draining:
		return nil, ErrClosed
	}
	e.pins++
	return &Pin{engine: e}, nil
}

// pinned is how many answers hold the engine open.
func (e *Engine) pinned() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pins
}

// newSequence makes one choice, with what was generated before.
func (e *Engine) newSequence(r *request, choice int) (*Sequence, error) {
	var guide Guide
	if choice < len(r.Guides) {
		guide = r.Guides[choice]
	}
	q := &Sequence{
		Prompt: len(r.Tokens), Priority: r.Priority, request: r, choice: choice,
		rules:      newRules(&r.Params, r.Tokens, e.cfg.EOS, e.cfg.Vocab, guide),
		NoLookup:   r.Params.PromptLogprobs >= 0,
		PromptRows: r.Params.PromptLogprobs >= 0 && choice == 0,
	}
	q.Table.Salt = r.Salt
	if len(r.Media) > 0 && !e.sight.tower.Beside {
		q.places, q.shift = positions(len(r.Tokens), r.Media)
		for i := range r.Media {
			it := &r.Media[i]
			q.Table.Media = append(q.Table.Media, kv.Media{First: it.First, Count: it.Count(), Digest: it.Digest})
		}
	}
	if a := r.Adapter; a != nil {
		q.Table.Adapter, q.adapter = a.id, int32(a.slot)+1
	}
	q.Tokens = append(append(make([]int32, 0, len(r.Tokens)+len(r.Resume)+16), r.Tokens...), r.Resume...)
	for i, id := range r.Resume {
		if !q.rules.accept(id) {
			return nil, fmt.Errorf("token %d of those generated before is not one that the request allows", i)
		}
	}
	if choice > 0 {
		q.Parent = r.choices[0]
	}
	return q, nil
}

// admit takes a request in; one that was resumed at its very end ends here.
func (e *Engine) admit(r *request) {
	e.live[r] = struct{}{}
	e.doors.arrive(r)
	e.stats.arrive(r)
	if len(e.pausing.waiters) > 0 {
		e.pausing.requests = append(e.pausing.requests, r)
		return
	}
	e.schedule(r)
}

// schedule hands the choices that are still wanted to the scheduler.
func (e *Engine) schedule(r *request) {
	if e.sight.awaits(r) {
		return
	}
	waited := e.past.steps(e.sched.step, time.Now(), r.Waited)
	for c, q := range r.choices {
		if q == nil {
			continue
		}
		q.waited = waited
		if r.Adapter != nil && !e.adapters.holds(r.Adapter) {
			e.endWith(r, c, Event{Choice: c, Token: -1, Finish: FinishError, StopID: -1, Err: fmt.Errorf("the adapter %s was unloaded", r.Adapter.Name)})
			continue
		}
		if end := q.rules.ended(q.Output(), e.cfg.MaxModelLen-len(q.Tokens)); end.why != "" {
			e.endWith(r, c, Event{Choice: c, Token: -1, Finish: end.why, StopID: end.stop, Mark: end.mark})
			continue
		}
		e.sched.Add(q)
	}
}

// endChoice ends a choice that the reader wants no more of.
func (e *Engine) endChoice(r *request, choice int, why Finish) {
	e.endWith(r, choice, Event{Choice: choice, Token: -1, Finish: why, StopID: -1})
}

// endWith ends a choice with its last event. A choice ends once.
func (e *Engine) endWith(r *request, choice int, last Event) {
	q := r.choices[choice]
	if q == nil {
		return
	}
	r.choices[choice] = nil
	e.sched.Remove(q)
	r.left--
	last.Cached = r.cached
	// The account first: who has the answer may look at it.
	e.stats.finish(r, q, last.Finish)
	e.stats.gauges(e)
	r.stream.put(last)
	if r.left == 0 {
		e.sight.cache.unpin(r.rows)
		r.rows = nil
		delete(e.live, r)
		e.doors.leave(r)
	}
}

// ResetPrefixCache forgets all cached prefixes. It says false while requests
// run.
func (e *Engine) ResetPrefixCache(ctx context.Context) bool {
	ok := false
	return e.call(ctx, func() { ok = e.cache.Reset() }) && ok
}

// AbortRequests ends the requests with these ids, all when there are none.
func (e *Engine) AbortRequests(ctx context.Context, ids []string) {
	e.call(ctx, func() {
		for r := range e.live {
			match := len(ids) == 0
			for _, id := range ids {
				match = match || r.ID == id
			}
			for c := range r.choices {
				if match {
					e.endChoice(r, c, FinishAbort)
				}
			}
		}
	})
}
