package ledger

import "sync"

// Ledger holds the accounts of all workers of one door.
type Ledger struct {
	mu        sync.Mutex
	breaker   Breaker
	slowStart int64

	// OnEject is told, under the lock, that a worker is taken out.
	OnEject func(w *Worker, reason string)
}

// Group is the workers that one choice is made among: a pool's.
type Group struct {
	Policy  Policy
	workers []*Worker
	turn    int // equals take turns from here

	// What choices read and leave of each worker, by its index.
	rows   []row
	queues []queued // the workers' row of each class after that of the class before
	terms  []terms
	rates  []float64 // learned prefill rates, 0: none; their mean, and whether it holds
	mean   float64
	rated  bool
	shun   []bool  // workers that the request which is being placed has tried
	joins  []int64 // when those that may be used joined, endless: they may not; the first, and whether it holds
	eldest int64
	joined bool

	curve    curve
	mix      mix
	crowding crowding
	perToken average // work of a prompt token
	aged     float64 // what waiting has earned so far, in tokens, and when
	agedAt   int64
}

// Begin says where equals begin to take turns. Doors that begin at different
// workers do not meet at the same one before they have heard of each other.
func (l *Ledger) Begin(g *Group, turn int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.turn = max(turn, 0)
}

// New returns an empty ledger.
func New() *Ledger { return &Ledger{} }

// Configure sets the breaker and how long a worker that joins takes to its
// full share, in nanoseconds.
func (l *Ledger) Configure(b Breaker, slowStart int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breaker, l.slowStart = b, slowStart
}

// SetGroup replaces the workers of a group. A worker that stays keeps its
// account.
func (l *Ledger) SetGroup(g *Group, p Policy, workers []*Worker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.Policy = p
	g.seat(workers)
}

// SetWorker says what the supervisor wants of a worker and which generation
// it is. A new generation clears all that was learned of the old one.
func (l *Ledger) SetWorker(w *Worker, generation uint64, ready bool, capacity int64, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation != w.generation {
		w.generation = generation
		w.kv, w.prefill, w.foreign, w.seq = 0, 0, 0, 0
		w.backlog, w.work, w.prompts, w.twice, w.queues = backlog{}, 0, 0, 0, 0
		for class := range w.backlog {
			w.postQueue(class)
		}
		w.shared, w.common, w.elsewhere, w.credit = nil, 0, Elsewhere{}, average{}
		w.reported, w.report = false, Report{}
		w.rate, w.decode, w.ttft, w.limit = average{}, average{}, average{}, 0
		w.breaker = breaker{}
		w.served, w.failed, w.tokens = 0, 0, 0
		w.capacity, w.maxLen = 0, 0
		w.joined, w.ready = 0, false
	}
	if capacity > 0 {
		w.capacity = capacity
	}
	if ready && !w.ready && w.joined == 0 {
		w.joined = now
	}
	w.ready = ready
	w.post()
}

// Account is one worker's account at one instant.
type Account struct {
	ID           string
	Generation   uint64
	Ready        bool
	Ejected      string // why, "" when it is not
	Capacity     int64
	KV, Prefill  int64
	Foreign      int64
	Elsewhere    Elsewhere
	Reported     int64 // -1: never said
	ReportAge    int64 // nanoseconds; -1: no report
	InFlight     int
	Running      int
	Waiting      int
	PrefillTotal int64 // as the worker says; -1: not said
	OldestSent   int64 // 0: none in flight
	Served       int64
	Failed       int64
	Tokens       int64
	TTFT         float64
	Decode       float64
	Rate         float64
	ProgressAt   int64
	MaxLen       int64
	Progress     int64 // as the worker counts; -1: not said
	Generated    int64 // of the live requests, as they are relayed
	PromptsLeft  int64 // of the live requests of all doors, those without a first token
	// PrefillSeconds is what those and what was sent beside the doors should take, by
	// the worker's rate or, where it is not learned, its group's; 0: neither is.
	PrefillSeconds float64
	RateLearned    bool
}

// Account returns a worker's account.
func (l *Ledger) Account(w *Worker, now int64) Account {
	l.mu.Lock()
	defer l.mu.Unlock()
	return w.accountAt(now)
}

// Weighed is one worker as a choice saw it.
type Weighed struct {
	ID                             string
	Capacity, KV, Prefill, Foreign int64
	ReportAge                      int64 // nanoseconds; -1: no report
	Fill, Wait                     float64
	Hit                            int64
	Out                            string // why it was not eligible
}

// Weighed appends what the last choice of a group saw, at most limit workers:
// the chosen one first.
func (l *Ledger) Weighed(dst []Weighed, g *Group, chosen *Worker, limit int, now int64) []Weighed {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range min(limit, len(g.workers)) {
		at := (chosen.index + k) % len(g.workers)
		w, t := g.workers[at], &g.terms[at]
		s := Weighed{
			ID: w.ID, Capacity: w.capacity, KV: w.kv, Prefill: w.prefill, Foreign: w.foreignNow(now), ReportAge: -1,
			Fill: t.fill, Wait: t.wait, Hit: int64(t.hit), Out: outNames[t.out],
		}
		if w.reported {
			s.ReportAge = now - w.report.At
		}
		if t.out == broken {
			s.Out = w.why
		}
		dst = append(dst, s)
	}
	return dst
}

func (w *Worker) accountAt(now int64) Account {
	v := Account{
		ID: w.ID, Generation: w.generation, Ready: w.ready, Ejected: w.breaker.open(now),
		Capacity: w.capacity, KV: w.kv, Prefill: w.prefill, Foreign: w.foreignNow(now), Elsewhere: w.elsewhere,
		Reported: -1, ReportAge: -1, InFlight: w.inflight, Running: -1, Waiting: -1, PrefillTotal: -1,
		Served: w.served, Failed: w.failed, Tokens: w.tokens, TTFT: w.ttft.v, Decode: w.decode.v, Rate: w.rate.v,
		ProgressAt: w.progressAt, MaxLen: w.maxLen, Progress: -1, PromptsLeft: w.prompts,
	}
	if w.reported {
		v.Reported, v.ReportAge = w.report.Used, now-w.report.At
		v.Running, v.Waiting, v.Progress = w.report.Running, w.report.Waiting, w.report.Progress
		if w.report.HasPrefill {
			v.PrefillTotal = w.report.PrefillTokens
		}
	}
	for c := w.charges; c != nil; c = c.next {
		if v.OldestSent == 0 || c.sent < v.OldestSent {
			v.OldestSent = c.sent
		}
		if c.generation == w.generation {
			v.Tokens += c.generated.Load()
		}
		v.Generated += c.generated.Load()
	}
	if w.elsewhere.Prefill > 0 {
		v.PromptsLeft++
	}
	v.PrefillSeconds, v.RateLearned = w.prefillSeconds()
	return v
}

// Usable reports whether a worker may be chosen now, room aside.
func (l *Ledger) Usable(w *Worker, now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return w.ready && w.breaker.open(now) == ""
}

// Generation returns the worker's generation, 0 while it may not be used.
func (w *Worker) Generation(l *Ledger) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.ready {
		return 0
	}
	return w.generation
}
