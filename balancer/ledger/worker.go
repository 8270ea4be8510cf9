package ledger

import (
	"fmt"
	"math"
	"slices"
)

// Worker is one worker's account. Its fields are guarded by Ledger.mu. What a
// choice reads of it stands in its row of the group: see post.
type Worker struct {
	account
	learned

	ID string // pool/name
	Of any    // whose account it is; the ledger only keeps it

	generation uint64
	ready      bool  // the supervisor wants it used, and it has been reached
	reported   bool  // it has said something of itself
	capacity   int64 // tokens of its KV cache; 0: unknown
	maxLen     int64 // the longest context it serves; 0: unknown

	theirs  bool  // another door takes it first
	joined  int64 // when it became ready; slow start counts from here
	breaker breaker
	why     string // what the breaker said to the last choice that it kept it out of
	group   *Group // that it is chosen in; nil: none now
	curve   *curve // of the group that it is or was in
	index   int    // its place in the group

	report  Report
	backlog backlog
	seq     uint64

	progressAt int64
	served     int64
	failed     int64
	tokens     int64
}

// account is what is booked at a worker, here and by others.
type account struct {
	kv        int64
	prefill   int64
	work      int64 // of the prompts to be prefilled, and how many
	prompts   int64
	turned    int64 // since when it computes the prompt under way, as far as is seen here
	queues    int64 // until then it counts as one at which requests wait
	inflight  int
	elsewhere Elsewhere
	foreign   int64
	twice     int64 // what several doors have booked that is there once
	charges   *Charge
	shared    map[uint64]shared // segments of live prompts, by their last digest
	common    int64             // tokens of all of them
}

// learned is what a worker's answers have shown of its speed.
type learned struct {
	rate   average // prefill work a second
	decode average // tokens a second of one stream
	ttft   average // seconds
	credit average // of what was believed cached, how much was
	limit  int     // learned concurrency of a worker without capacity; 0: none yet
}

// there is how many requests all doors have at the worker.
func (w *Worker) there() int { return w.inflight + w.elsewhere.InFlight }

// computed takes a charge's prefill out of the account.
func (w *Worker) computed(c *Charge) {
	w.prefill -= c.prefill
	if c.work > 0 {
		w.queue(c.class, -c.work, -1)
	}
	c.prefill, c.work = 0, 0
}

// check holds the invariants of the accounts.
func (w *Worker) check() {
	if w.kv < 0 || w.prefill < 0 || w.inflight < 0 || w.common < 0 || w.work < 0 {
		panic(fmt.Sprintf("BUG: the ledger of %s went below zero: kv %d, prefill %d, in flight %d", w.ID, w.kv, w.prefill, w.inflight))
	}
}

// average is an exponentially weighted mean that starts at its first sample.
type average struct {
	v float64
	n int
}

func (a *average) add(x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return
	}
	if a.n < 1<<30 {
		a.n++
	}
	step := 1 / float64(a.n)
	if step < 0.05 {
		step = 0.05
	}
	a.v += (x - a.v) * step
}

// peak follows the upper samples: it rises fast and sinks slowly, for what a
// worker can do shows only when it is busy with nothing else.
func (a *average) peak(x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return
	}
	a.n = min(a.n+1, 1<<30)
	switch {
	case a.n == 1:
		a.v = x
	case x > a.v:
		a.v += (x - a.v) * 0.2
	default:
		a.v += (x - a.v) * 0.02
	}
}

// learnPrefill takes one sample of the prefill rate: the work that the worker
// had to do before a first token, and the time it took. Short prompts
// measure the step and the network and are left out.
func (w *Worker) learnPrefill(work, took int64) {
	if work < 64 || took <= 0 {
		return
	}
	w.rate.peak(float64(work) / (float64(took) / 1e9))
}

// prefillSeconds is what the prompts at the worker should take by its rate, or its
// group's; 0 where nobody has learned one. known reports whether its own is.
func (w *Worker) prefillSeconds() (seconds float64, known bool) {
	rate := w.rate.v
	if known = w.rate.n >= fewSamples && rate > 0; !known {
		if w.group == nil || !slices.ContainsFunc(w.group.rates, func(r float64) bool { return r > 0 }) {
			return 0, false
		}
		rate = w.group.meanRate()
	}
	return float64(w.work+w.elsewhere.Prefill+w.report.foreignPrefill) / rate, known
}

// learnCredit compares what was believed to lie in the worker's cache with what
// did: an engine without prefix caching, or one whose cache turns over faster
// than the table knows, is believed less.
func (w *Worker) learnCredit(believed, cached int64) {
	if believed < 256 {
		return
	}
	if w.credit.n == 0 {
		w.credit = average{v: 1, n: 4} // innocent until several answers have told
	}
	w.credit.add(math.Min(1, float64(cached)/float64(believed)))
}

// cached is how much of a prompt the worker's cache holds, as far as the prefix
// table is to be believed.
func (w *Worker) cached(believed int64) int64 {
	if w.credit.n == 0 {
		return believed
	}
	return int64(float64(believed) * w.credit.v)
}

func (w *Worker) learnDecode(tokens, took int64) {
	if took > 0 {
		w.decode.add(float64(tokens) / (float64(took) / 1e9))
	}
}

// Report is what a worker says of itself, translated by its reader.
type Report struct {
	At             int64 // when it was made, or when its scrape began, by this door's clock
	foreignPrefill int64 // of PrefillTokens, what no door has sent
	HasPrefill     bool
	Draining       bool

	Capacity int64 // 0: not said
	MaxLen   int64 // 0: not said
	Used     int64 // -1: not said
	// Own is what of Used belongs to this door's requests; -1 where the worker
	// cannot tell, and the door's own count of what was sent before At stands in.
	Own           int64
	Others        int64 // of Used, what belongs to other doors' requests; -1: as those doors say
	Running       int   // -1: not said
	Waiting       int   // -1: not said
	PrefillTokens int64
	Progress      int64 // tokens computed and generated since the start; -1: not said
}

// Report enters what a worker says. Absurd figures are dropped one by one.
func (l *Ledger) Report(w *Worker, generation uint64, r Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation != w.generation {
		return
	}
	if r.Capacity > 0 && r.Capacity < 1<<40 {
		w.capacity = r.Capacity
	}
	if r.MaxLen > 0 && r.MaxLen < 1<<40 {
		w.maxLen = r.MaxLen
	}
	if r.Used < 0 || w.capacity > 0 && r.Used > 2*w.capacity {
		r.Used = -1
	}
	if w.reported && r.Progress > w.report.Progress {
		w.progressAt = r.At
	}
	w.foreign = 0
	if r.Used >= 0 {
		own := r.Own
		if own < 0 {
			own = w.resident(r.At)
		}
		others := r.Others
		if others < 0 {
			others = w.elsewhere.Resident
		}
		w.foreign = max(0, r.Used-own-others)
		// What still waits there holds nothing; only without it the difference is what
		// requests of several doors share.
		if r.Waiting == 0 || r.Own >= 0 {
			w.twice = min(max(0, own+others-r.Used), own, others)
		}
	}
	if r.HasPrefill {
		r.foreignPrefill = max(0, r.PrefillTokens-w.unfinished(r.At)-w.elsewhere.Prefill)
	}
	w.learnLimit(&r)
	if r.Waiting > 0 {
		w.queues = r.At + queuesFor
	}
	w.report, w.reported = r, true
	w.post()
}

// resident is what of this door's requests sent before at is really there: a
// prompt whole, since engines book its blocks when they admit it, and what has
// been generated.
func (w *Worker) resident(at int64) (tokens int64) {
	for c := w.charges; c != nil; c = c.next {
		if c.sent <= at {
			tokens += max(c.prompt+c.generated.Load()-c.covered, 0)
		}
	}
	return tokens + w.common
}

// unfinished is the prefill of this door's requests sent before at.
func (w *Worker) unfinished(at int64) (tokens int64) {
	for c := w.charges; c != nil; c = c.next {
		if c.sent <= at {
			tokens += c.prefill
		}
	}
	return tokens
}

// learnLimit learns how many requests a worker without a capacity figure runs
// at once: what it ran while others waited, and more when none does.
func (w *Worker) learnLimit(r *Report) {
	if w.capacity > 0 || r.Running < 0 || r.Waiting < 0 {
		return
	}
	switch {
	case r.Waiting > 0:
		w.limit = max(1, r.Running)
	case w.limit > 0 && r.Running >= w.limit:
		w.limit = r.Running + 1
	}
}

// The ages between which a report's foreign load fades to nothing.
const (
	freshFor = 2e9
	goneBy   = 20e9
)

// foreignNow is the foreign load, faded by the age of its report.
func (w *Worker) foreignNow(now int64) int64 {
	return int64(float64(w.foreign) * w.trust(now))
}

// trust is how much of a report still counts: 1 while it is fresh, 0 when old.
func (w *Worker) trust(now int64) float64 {
	if !w.reported {
		return 0
	}
	return faded(now - w.report.At)
}

// faded is how much of a report of some age still counts.
func faded(age int64) float64 {
	if age <= freshFor {
		return 1
	}
	return max(0, 1-(float64(age)-freshFor)/(goneBy-freshFor))
}
