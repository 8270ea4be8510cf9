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
	// ChunkBytes of it are: what live requests at one worker have in common is booked
	// once. They must not change while the charge is live.
	Chunks      []uint64
	ChunkTokens float64
	// Looks are the tokens of its pictures and sounds that a worker has not seen, by
	// the worker's index in the group; nil: none. They come with Hits.
	Looks []int32
	// Tried are workers that are not to be asked again in that generation.
	Tried []Try
	// Prefer is the one worker that must take it, if it can; nil: any.
	Prefer *Worker
	// Spare is a worker that is asked only where nobody else can be; nil: none.
	Spare *Worker
	// Among are the workers to choose from; nil: all of the group.
	Among []*Worker
	// Only reports whether a worker has what the request asks for, a model beside the
	// others' perhaps, as things are now; nil: all have. It must not wait.
	Only func(*Worker) bool
	// Order is what a policy outside the ledger prefers, the best first: the first
	// of it that can take the request gets it. Nil, or none of it: the group's policy.
	Order []*Worker
	// Force takes a worker even where none has room, Eager even where it would
	// only wait there.
	Force, Eager bool
	// AnyLength takes a worker whose context the estimate of the prompt exceeds, though
	// one with a longer context may be had later.
	AnyLength bool
	// Behind is how many requests wait at the door: what this one takes of a worker,
	// they wait longer.
	Behind int
	Now    int64
}

// look is the work of looking at what a worker has not seen. What makes rows of a
// picture is a model of its own, which takes about half as long for each of its
// tokens as the prompt's does.
func (a *Ask) look(i int) float64 {
	if i >= len(a.Looks) {
		return 0
	}
	return float64(a.Looks[i]) / 2
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
	Picked Verdict = iota
	Full           // workers are there, and at each a request would only wait
	None           // no worker can be asked
)

// The fill below which KV has no resolution, and how near two fills are alike.
const (
	lowFill  = 0.8
	nearFill = 0.2
)

// Pick chooses a worker of the group and books the request there, in one step.
func (l *Ledger) Pick(g *Group, a *Ask, c *Charge) (Verdict, Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.live {
		panic("BUG: a charge that is still booked was picked again")
	}
	s, verdict := l.survey(g, a)
	if verdict != Picked {
		return verdict, ""
	}
	best, reason := g.choose(a, &s)
	if s.open == 0 {
		return Full, ""
	}
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
	for i := range g.terms {
		wait := 0.0
		if t := &g.terms[i]; t.out == in || t.out == full {
			wait = t.wait
		}
		dst = append(dst, wait)
	}
	return dst
}

// survey finds who can be asked, and leaves the terms of each with the group.
//
// A prompt's length is an estimate, which keeps it from workers with a short
// context while there are others. It refuses nobody: where no longer context is to
// be had, the longest there is will judge, and the prompt counts as one that just
// fits.
func (l *Ledger) survey(g *Group, a *Ask) (tally, Verdict) {
	g.mark(a.Tried, true)
	crowd := g.demandOf(a, l.slowStart)
	s := g.weigh(a, &crowd)
	if s.n == 0 && !s.full && a.Spare != nil {
		a.Spare = nil
		s = g.weigh(a, &crowd)
	}
	if s.n == 0 && s.longest > 0 && (a.AnyLength || !s.full && !s.later) {
		a.Prompt = s.longest - 1
		crowd = g.demandOf(a, l.slowStart)
		s = g.weigh(a, &crowd)
	}
	g.mark(a.Tried, false)
	switch {
	case s.n > 0:
		return s, Picked
	case s.full:
		return s, Full
	}
	return s, None
}

// mark notes which workers of the group were tried, so that a long list of them
// is read once and not for each.
func (g *Group) mark(tried []Try, shun bool) {
	for _, t := range tried {
		if w := t.Worker; w.group == g && w.generation == t.Generation {
			g.shun[w.index] = shun
		}
	}
}

// excluded says why a worker cannot be asked at all.
func (g *Group) excluded(i int, a *Ask) out {
	w := g.workers[i]
	if !w.ready {
		return notReady
	}
	if a.Among != nil && !slices.Contains(a.Among, w) {
		return outside
	}
	if a.Only != nil && !a.Only(w) {
		return outside
	}
	if a.Prefer != nil && a.Prefer != w {
		return stickyElsewhere
	}
	if a.Spare == w {
		return spared
	}
	if g.shun[i] {
		return triedAlready
	}
	if w.why = w.breaker.open(a.Now); w.why != "" {
		return broken
	}
	if a.Prompt >= g.rows[i].maxLen {
		return tooShort
	}
	return in
}

// choose picks among the n workers that survey left in. Equals take turns.
func (g *Group) choose(a *Ask, s *tally) (*Worker, Reason) {
	for _, w := range a.Order {
		if w.group == g && g.terms[w.index].out == in {
			return w, g.reason(a, w, s.n, false)
		}
	}
	var best *terms
	chosen, tie, passed := 0, false, false
	from, kv, far := g.turn%len(g.terms), g.Policy == LeastKV, math.Inf(1)
	for k := range g.terms {
		if k += from; k >= len(g.terms) {
			k -= len(g.terms)
		}
		t := &g.terms[k]
		if t.out != in || t.busy && g.Policy > Fastest && s.open > 0 {
			continue
		}
		if kv && t.fill >= lowFill && t.fill > s.low+nearFill {
			passed = true
			continue
		}
		if best != nil {
			if kv && t.cost-best.cost > far {
				continue // as compare would find
			}
			if d := compare(g.Policy, t, best); d >= 0 {
				tie = tie || d == 0
				continue
			}
		}
		best, chosen, tie = t, k, false
		if g.Policy == RoundRobin {
			break
		}
		far = best.far()
	}
	w := g.workers[chosen]
	return w, g.reason(a, w, s.n, tie && !passed)
}

func (g *Group) reason(a *Ask, best *Worker, n int, tie bool) Reason {
	hit := int64(g.terms[best.index].hit)
	switch {
	case a.Prefer != nil:
		return Sticky
	case n == 1:
		return Only
	case !best.reported && g.Policy == LeastKV:
		return NoReport
	case hit > 0 && hit*2 >= a.Prompt:
		return Prefix
	case tie || g.Policy == RoundRobin:
		return Tie
	}
	return Least
}

// compare orders two workers: below zero when a is the better choice.
func compare(p Policy, a, b *terms) int {
	if p == LeastInflight {
		return sign(float64(a.there+1)/a.grown - float64(b.there+1)/b.grown)
	}
	wa, wb := a.cost, b.cost
	if p == Fastest {
		wa, wb = a.wait+barrier(a.fill), b.wait+barrier(b.fill)
	}
	if d := math.Abs(wa - wb); d > a.far() || d > b.far() {
		return sign(wa - wb)
	}
	if d := a.there - b.there; d != 0 {
		return sign(float64(d))
	}
	if d := a.fill - b.fill; math.Abs(d) > nearFill {
		return sign(d)
	}
	return 0
}

// far is how much more or less a worker must cost to be told from another: below
// a millisecond or a hundredth, two predictions are one.
func (t *terms) far() float64 {
	if d := 0.01 * t.wait; d > 1e-3 {
		return d
	}
	return 1e-3
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
	t := &g.terms[w.index]
	hit, believed := int64(t.hit), int64(t.believed)
	*c = Charge{
		worker: w, generation: w.generation, live: true,
		prompt: a.Prompt, expect: a.Expect, hit: hit,
		believed: believed, prefill: a.Prompt - hit,
		class: classOf(a.Prompt - hit), work: max(g.curve.work(a.Prompt, hit)+int64(a.look(w.index)), 1),
		sent: a.Now, Seq: w.seq, next: w.charges,
	}
	c.pending = w.before(c.class)
	c.alone = w.work+w.elsewhere.Prefill+w.report.foreignPrefill == 0
	if w.rate.v > 0 {
		c.predicted = t.wait
	}
	w.cover(c, a)
	c.kv = c.own()
	if w.charges != nil {
		w.charges.prev = c
	}
	w.charges = c
	w.kv += c.kv
	w.prefill += c.prefill
	if w.prompts == 0 {
		w.turned = a.Now
	}
	w.queue(c.class, c.work, 1)
	g.mix.add(c.class, float64(c.work))
	g.crowding.booked(a.Now, c.work)
	if c.prefill >= 32 {
		g.perToken.add(float64(c.work) / float64(c.prefill))
	}
	w.inflight++
	if w.breaker.opens > 0 {
		w.breaker.probing = true
	}
	w.post()
}
