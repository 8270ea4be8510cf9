package ledger

import (
	"math"
)

// row is what a choice reads of one worker: two cache lines, in one piece with
// those of the other workers of the group, so that a choice among a thousand
// reads little and in order. All of it follows from the worker's account; post
// brings it up to date. What is added, compared and divided is kept as the
// floating-point number that it becomes: all of it is exact.
type row struct {
	capacity       float64 // tokens of its KV cache; 0: unknown
	booked         float64 // tokens that all doors have booked there
	foreign        float64 // tokens, as its report had them
	foreignPrefill float64
	work           float64 // of the prompts to be prefilled, and how many
	prompts        float64
	mean           float64 // work a token of these prompts at their end
	elsewhere      float64 // prefill tokens that other doors have there
	rate           float64 // prefill work a second; 0: too few samples to tell
	credit         float64 // the share of what is believed cached that is
	there          int64   // requests of all doors
	fresh          int64   // its report counts whole until then
	joined         int64
	shut           int64 // it may be that it cannot be asked until then
	maxLen         int64 // endless, where it is unknown
	turned         int64 // since when it computes the prompt under way
	queues         int64 // until then it counts as one at which requests wait
	limit          int32 // learned concurrency; 0: none
	shortest       bool  // it takes the shortest prompt first, and says what it has to prefill
	theirs         bool  // another door takes it first
}

const (
	never   = math.MinInt64 / 2
	endless = math.MaxInt64
)

// queued is the work that a worker has in prompts up to one class of length,
// and how many they are.
type queued struct{ work, n float64 }

// terms is what a choice made of one worker.
type terms struct {
	cost     float64 // of the request there, to itself and to the others, in seconds
	wait     float64 // to the first token, in seconds
	fill     float64 // of the KV cache, with the request
	grown    float64 // the part of its full share that one which has joined takes
	there    int64   // requests of all doors
	hit      int32   // of the prompt, cached there as far as that is to be believed
	believed int32   // of the prompt, cached there by the prefix table alone
	out      out
	busy     bool // a request would only wait there
}

// out says why a worker cannot take a request.
type out byte

const (
	in out = iota
	notReady
	stickyElsewhere
	spared
	triedAlready
	tooShort
	full   // no room
	broken // as its breaker says
	outside
)

var outNames = [...]string{"", "not ready", "sticky elsewhere", "on trial", "tried already", "context too short", "full", "", "not among those to choose from"}

// seat gives the workers of a group their rows. What the last choice saw of
// those that stay is kept, for who asks how it came about.
func (g *Group) seat(workers []*Worker) {
	last := make([]terms, len(workers))
	for i, w := range workers {
		if w.group == g {
			last[i] = g.terms[w.index]
		}
	}
	for _, w := range g.workers {
		if w.group == g {
			w.group = nil
		}
	}
	g.workers, g.terms = workers, last
	g.rows = make([]row, len(workers))
	g.queues = make([]queued, classes*len(workers))
	g.rates, g.rated = make([]float64, len(workers)), false
	g.shun = make([]bool, len(workers))
	g.joins, g.joined = make([]int64, len(workers)), false
	for i, w := range workers {
		w.group, w.index, w.curve = g, i, &g.curve
		w.post()
		for class := range w.backlog {
			w.postQueue(class)
		}
	}
}

// post brings a worker's row up to what its account says. Whoever changes the
// account calls it before the lock is given back.
func (w *Worker) post() {
	g := w.group
	if g == nil {
		return
	}
	e := &w.elsewhere
	r := &g.rows[w.index]
	*r = row{
		capacity: float64(max(w.capacity, 0)), booked: float64(w.kv + e.KV - min(w.twice, w.kv, e.KV)), foreign: float64(w.foreign),
		foreignPrefill: float64(w.report.foreignPrefill), elsewhere: float64(e.Prefill),
		work: float64(w.work), prompts: float64(w.prompts),
		mean: max(1, 2*float64(w.work)/float64(max(w.prefill, 1))-1), credit: 1,
		there: int64(w.there()), fresh: never, joined: w.joined, shut: max(w.breaker.until, w.breaker.busy), maxLen: endless,
		turned: w.turned, limit: int32(min(w.limit, math.MaxInt32)), shortest: w.report.HasPrefill, queues: w.queues, theirs: w.theirs,
	}
	if !w.ready || w.breaker.opens > 0 && w.breaker.probing {
		r.shut = endless
	}
	if w.rate.n >= fewSamples {
		r.rate = w.rate.v
	}
	if w.credit.n > 0 {
		r.credit = w.credit.v
	}
	if w.reported {
		r.fresh = w.report.At + freshFor
	}
	if w.maxLen > 0 {
		r.maxLen = w.maxLen
	}
	if g.rates[w.index] != w.rate.v {
		g.rates[w.index], g.rated = w.rate.v, false
	}
	joined := w.joined
	if !w.ready {
		joined = endless
	}
	if g.joins[w.index] != joined {
		g.joins[w.index], g.joined = joined, false
	}
}

// firstJoin is when the first of the workers that may be used joined.
func (g *Group) firstJoin() int64 {
	if !g.joined {
		g.eldest, g.joined = endless, true
		for _, at := range g.joins {
			g.eldest = min(g.eldest, at)
		}
	}
	return g.eldest
}

// postQueue does the same for what is queued there in prompts of a class.
func (w *Worker) postQueue(class int) {
	if g := w.group; g != nil {
		b := &w.backlog[class]
		g.queues[class*len(g.rows)+w.index] = queued{float64(b.work), float64(b.n)}
	}
}

// meanRate is the group's mean prefill rate, for those who have none yet.
func (g *Group) meanRate() float64 {
	if g.rated {
		return g.mean
	}
	sum, n := 0.0, 0
	for _, v := range g.rates {
		if v > 0 {
			sum += v
			n++
		}
	}
	g.mean, g.rated = priorRate, true
	if n > 0 {
		g.mean = sum / float64(n)
	}
	return g.mean
}
