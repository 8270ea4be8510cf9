package ledger

import (
	"math"
	"slices"
)

// Policy is how a worker is chosen.
type Policy byte

// The policies.
const (
	LeastKV Policy = iota
	Fastest
	LeastInflight
	RoundRobin
)

// ParsePolicy reads a policy's name.
func ParsePolicy(name string) (Policy, bool) {
	for p, n := range policyNames {
		if n == name {
			return Policy(p), true
		}
	}
	return LeastKV, false
}

var policyNames = [...]string{"least_kv", "fastest", "least_inflight", "round_robin"}

// String returns the policy's name.
func (p Policy) String() string { return policyNames[p] }

// Ask is what a request needs.
type Ask struct {
	Prompt int64 // tokens
	Expect int64 // tokens of output
	// Hits are the prompt tokens believed to lie in a worker's cache, by the
	// worker's index in the group; nil: none.
	Hits []int32
	// Chunks are the chained digests of the prompt, and ChunkTokens how many tokens
	// each stands for: what live requests at one worker have in common is booked
	// once. They must not change while the charge is live.
	Chunks      []uint64
	ChunkTokens float64
	// Tried are workers that are not to be asked again in that generation.
	Tried []Try
	// Prefer is the one worker that must take it, if it can; nil: any.
	Prefer *Worker
	// Order is what a policy outside the ledger prefers, the best first: the first
	// of it that can take the request gets it. Nil, or none of it: the group's policy.
	Order []*Worker
	// Force takes a worker even where none has room.
	Force bool
	Now   int64
}

// Try is a worker that has failed a request.
type Try struct {
	Worker     *Worker
	Generation uint64
}

// Reason says how a choice came about.
type Reason string

// The reasons, as the metric roundhouse_decisions_total has them.
const (
	Least    Reason = "least"
	Tie      Reason = "tie"
	Prefix   Reason = "prefix"
	Sticky   Reason = "sticky"
	Only     Reason = "only"
	NoReport Reason = "no_report"
)

// Verdict says what became of a Pick.
type Verdict byte

// The verdicts.
const (
	Picked  Verdict = iota
	Full            // workers are there, and none has room
	None            // no worker can be asked
	TooLong         // no worker's context is long enough
)

// The fill below which KV has no resolution, and how near two fills are alike.
const (
	lowFill  = 0.8
	nearFill = 0.2
)

// alike is how near a worker's learned rate must be to its group's mean to be
// taken for it: what is left of noise would send requests astray.
const alike = 0.3

// fewSamples are too few to tell a worker's rate from its group's.
const fewSamples = 4

// priorRate stands in for a prefill rate until one has been learned.
const priorRate = 4000

// Pick chooses a worker of the group and books the request there, in one step.
func (l *Ledger) Pick(g *Group, a *Ask, c *Charge) (Verdict, Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.live {
		panic("BUG: a charge that is still booked was picked again")
	}
	n, low, verdict := l.survey(g, a)
	if n == 0 {
		return verdict, ""
	}
	best, reason := l.choose(g, a, n, low)
	l.book(g, best, a, c)
	g.turn = best.index + 1
	return Picked, reason
}

// Predicted appends the time to first token that each worker of the group would
// have for the request, in seconds; 0 where it cannot be asked.
func (l *Ledger) Predicted(dst []float64, g *Group, a *Ask) []float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.survey(g, a)
	for _, w := range g.workers {
		wait := 0.0
		if w.out == "" || w.out == full {
			wait = w.wait
		}
		dst = append(dst, wait)
	}
	return dst
}

// survey finds who can be asked, and leaves each one's fill and predicted time
// to first token with it. It returns how many there are, and the least fill.
func (l *Ledger) survey(g *Group, a *Ask) (n int, low float64, verdict Verdict) {
	low, verdict = math.Inf(1), None
	crowd := g.crowd(a.Prompt)
	long, some := 0, 0
	for i, w := range g.workers {
		w.hit, w.believed = 0, 0
		if a.Hits != nil {
			w.believed = min(int64(a.Hits[i]), a.Prompt)
			w.hit = w.cached(w.believed)
		}
		out := w.excluded(a)
		switch {
		case out != "":
		case w.maxLen > 0 && a.Prompt >= w.maxLen:
			out = "context too short"
			some++
			long++
		default:
			some++
			if out = w.weigh(a, &crowd, l.slowStart); out != "" && !a.Force {
				verdict = Full
				break
			}
			out = ""
			low = min(low, w.fill)
			n++
		}
		w.out = out
	}
	if some > 0 && long == some {
		verdict = TooLong
	}
	return n, low, verdict
}

// excluded says why a worker cannot be asked at all.
func (w *Worker) excluded(a *Ask) string {
	if !w.ready {
		return "not ready"
	}
	if a.Prefer != nil && a.Prefer != w {
		return "sticky elsewhere"
	}
	for _, t := range a.Tried {
		if t.Worker == w && t.Generation == w.generation {
			return "tried already"
		}
	}
	return w.breaker.open(a.Now)
}

// full says that a worker has no room for the request.
const full = "full"

// weigh computes a worker's fill after taking the request, the predicted time
// to first token, and what the request costs there. It returns full where there
// is no room.
func (w *Worker) weigh(a *Ask, g *crowd, slowStart int64) string {
	trust := w.trust(a.Now)
	foreign := float64(w.foreign) * trust
	need := float64(a.Prompt + a.Expect)
	second := g.second
	if w.rate.n >= fewSamples && math.Abs(w.rate.v-g.rate) >= alike*g.rate {
		second = 1 / w.rate.v
	}
	own := float64(w.curve.work(a.Prompt, w.hit))
	ahead, behind := w.ahead(a, g)
	w.wait = (ahead + float64(w.report.foreignPrefill)*g.perToken*trust + own) * second
	there := w.there()
	noRoom := false
	if w.capacity > 0 {
		cap := float64(w.capacity)
		held := float64(w.kv+w.elsewhere.KV-min(w.twice, w.kv, w.elsewhere.KV)) + foreign
		w.fill = (held + need) / cap
		if w.fill > lowFill && w.hit > 0 {
			w.fill = (held + need - float64(w.live(a))) / cap
		}
		noRoom = w.fill > 1 && (there > 0 || foreign > cap/2)
		// A prefill shares its steps with what is being decoded there, which takes the
		// longer the more KV it reads.
		w.wait *= 1 + w.fill/2
	} else {
		w.fill = 0
		noRoom = w.limit > 0 && there >= w.limit && trust > 0
		w.wait *= 1 + float64(there)/256
	}
	w.cost = w.wait + own*second*behind // those behind it wait for it
	w.grown = 1
	if age := a.Now - w.joined; slowStart > 0 && age < slowStart {
		// A worker that has just joined seems fuller and slower than it is, less
		// and less: its caches are cold and its clocks not learned.
		share := max(float64(age)/float64(slowStart), 0.1)
		w.grown = share
		w.wait /= share
		w.cost /= share
		w.fill = min(w.fill/share, max(w.fill, 1))
	}
	if noRoom {
		return full
	}
	return ""
}

// meanRate is the group's mean prefill rate, for those who have none yet.
func (g *Group) meanRate() float64 {
	sum, n := 0.0, 0
	for _, w := range g.workers {
		if w.rate.n > 0 {
			sum += w.rate.v
			n++
		}
	}
	if n == 0 {
		return priorRate
	}
	return sum / float64(n)
}

// choose picks among the n workers that survey left in. Equals take turns.
func (l *Ledger) choose(g *Group, a *Ask, n int, low float64) (*Worker, Reason) {
	for _, w := range a.Order {
		if w.out == "" && slices.Contains(g.workers, w) {
			return w, reasonOf(g, a, w, n, false)
		}
	}
	var best *Worker
	tie, passed := false, false
	at := g.turn % len(g.workers)
	for range g.workers {
		w := g.workers[at]
		if at++; at == len(g.workers) {
			at = 0
		}
		if w.out != "" {
			continue
		}
		if g.Policy == LeastKV && w.fill >= lowFill && w.fill > low+nearFill {
			passed = true
			continue
		}
		if best == nil {
			best = w
			if g.Policy == RoundRobin {
				break
			}
			continue
		}
		switch d := compare(g.Policy, w, best); {
		case d < 0:
			best, tie = w, false
		case d == 0:
			tie = true
		}
	}
	return best, reasonOf(g, a, best, n, tie && !passed)
}

func reasonOf(g *Group, a *Ask, best *Worker, n int, tie bool) Reason {
	switch {
	case a.Prefer != nil:
		return Sticky
	case n == 1:
		return Only
	case !best.reported && g.Policy == LeastKV:
		return NoReport
	case best.hit > 0 && best.hit*2 >= a.Prompt:
		return Prefix
	case tie || g.Policy == RoundRobin:
		return Tie
	}
	return Least
}

// compare orders two workers: below zero when a is the better choice.
func compare(p Policy, a, b *Worker) int {
	if p == LeastInflight {
		return sign(float64(a.there()+1)/a.grown - float64(b.there()+1)/b.grown)
	}
	wa, wb := a.cost, b.cost
	if p == Fastest {
		wa, wb = a.wait+barrier(a.fill), b.wait+barrier(b.fill)
	}
	// Below a millisecond or a hundredth, two predictions are one.
	if d := math.Abs(wa - wb); d > 1e-3 && (d > 0.01*a.wait || d > 0.01*b.wait) {
		return sign(wa - wb)
	}
	if d := a.there() - b.there(); d != 0 {
		return sign(float64(d))
	}
	if d := a.fill - b.fill; math.Abs(d) > nearFill {
		return sign(d)
	}
	return 0
}

// barrier is the price, in seconds, of a cache that fills up.
func barrier(fill float64) float64 {
	f := min(fill, 0.999)
	return 0.15 * f / (1 - f)
}

func sign(x float64) int {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	}
	return 0
}

// book enters a request at a worker.
func (l *Ledger) book(g *Group, w *Worker, a *Ask, c *Charge) {
	w.seq++
	*c = Charge{
		worker: w, generation: w.generation, live: true,
		prompt: a.Prompt, expect: a.Expect, hit: w.hit,
		believed: w.believed, prefill: a.Prompt - w.hit,
		class: classOf(a.Prompt - w.hit), work: max(w.curve.work(a.Prompt, w.hit), 1),
		sent: a.Now, Seq: w.seq, next: w.charges,
	}
	c.pending = w.before(c.class)
	c.alone = w.work+w.elsewhere.Prefill+w.report.foreignPrefill == 0
	w.cover(c, a)
	c.kv = c.own()
	if w.charges != nil {
		w.charges.prev = c
	}
	w.charges = c
	w.kv += c.kv
	w.prefill += c.prefill
	w.queue(c.class, c.work, 1)
	g.mix.add(c.class, float64(c.work))
	if c.prefill >= 32 {
		g.perToken.add(float64(c.work) / float64(c.prefill))
	}
	w.inflight++
	if w.breaker.opens > 0 {
		w.breaker.probing = true
	}
}
