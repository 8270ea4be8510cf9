package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"roundhouse/balancer/ledger"
)

// Policies returns what is compared: ours first, then what others publish.
func Policies() []func() Policy {
	simple := func(name string, place func(*book, *Fleet, *Job) int) func() Policy {
		return func() Policy { return &book{name: name, place: place} }
	}
	return []func() Policy{
		func() Policy { return newLedgerPolicy(ledger.LeastKV) },
		func() Policy { return newDoors(4, tellEvery) },
		func() Policy { return newLedgerPolicy(ledger.Fastest) }, func() Policy { return newLedgerPolicy(ledger.LeastInflight) }, func() Policy { return newLedgerPolicy(ledger.RoundRobin) },
		simple("least gauge", leastGauge), simple("round robin", roundRobin), simple("least request", leastRequest),
		simple("power of two", powerOfTwo), simple("random", random), simple("cache aware", cacheAware), simple("LMetric", lmetric), simple("smg least_load", smgLeastLoad),
		simple("Dynamo cost", dynamo), simple("llm-d gate", llmdGate),
	}
}

// ledgerPolicy is the door's ledger, driven by the fleet's clock.
type ledgerPolicy struct {
	l       *ledger.Ledger
	g       ledger.Group
	ws      []*ledger.Worker
	table   *ledger.PrefixTable
	learned ledger.Learned
	policy  ledger.Policy
	up      []bool
	hits    []ledger.Hits // by worker
	door    int           // which of several
	several bool          // there are other doors
	tells   bool          // they want to hear what workers cache
	untold  []cachedNews
}

// cachedNews is what other doors are to hear of one worker's cache.
type cachedNews struct {
	worker int
	blocks []uint64
}

func newLedgerPolicy(p ledger.Policy) *ledgerPolicy {
	return &ledgerPolicy{l: ledger.New(), policy: p, table: ledger.NewPrefixTable(8 << 20)}
}

// Name implements Policy.
func (o *ledgerPolicy) Name() string { return o.policy.String() }

func nanos(t float64) int64 { return int64(t*1e9) + 1 }

func (o *ledgerPolicy) start(f *Fleet, now float64) {
	if o.ws == nil {
		for i := range f.Workers() {
			o.ws = append(o.ws, &ledger.Worker{ID: fmt.Sprint("w/", i)})
		}
		o.up, o.hits = make([]bool, f.Workers()), make([]ledger.Hits, f.Workers())
		o.l.SetGroup(&o.g, o.policy, o.ws)
		o.l.Configure(ledger.Breaker{}, 30e9)
	}
	for i, w := range o.ws {
		if !o.up[i] && f.Up(i) {
			o.up[i] = true
			o.table.Limit(i, f.speeds[i].Capacity/blockTokens)
			o.l.SetWorker(w, 1, true, int64(f.speeds[i].Capacity), nanos(now))
		}
	}
}

// worker is the index of a worker of that id.
func (o *ledgerPolicy) worker(id string) int {
	return slices.IndexFunc(o.ws, func(w *ledger.Worker) bool { return w.ID == id })
}

// Place implements Policy. The door knows a prompt's bytes and learns what
// tokens they make; here the prompt's tokens stand for that estimate.
func (o *ledgerPolicy) Place(f *Fleet, j *Job, now float64) int {
	o.start(f, now)
	_, expect := o.learned.Estimate(ledger.Size{}, 0)
	a := ledger.Ask{Prompt: int64(j.Prompt), Expect: expect, Now: nanos(now)}
	if j.door < len(f.queued) {
		a.Behind = max(0, len(f.queued[j.door])-1)
	}
	if len(j.Blocks) > 0 {
		a.Chunks, a.ChunkTokens = j.Blocks, blockTokens
		a.Hits = make([]int32, len(o.ws))
		o.table.Match(j.Blocks, a.Hits)
		for i := range a.Hits {
			a.Hits[i] *= blockTokens
		}
	}
	c := &ledger.Charge{}
	if v, _ := o.l.Pick(&o.g, &a, c); v != ledger.Picked {
		return -1
	}
	j.state, j.told = c, true
	for i, w := range o.ws {
		if w == c.Worker() {
			if f.speeds[i].InOrder {
				o.remember(i, j)
			}
			return i
		}
	}
	panic("BUG: a worker of another group was picked")
}

// turn is when a job goes among those that the door holds.
func (o *ledgerPolicy) turn(j *Job, now float64) float64 {
	return o.l.Rank(&o.g, int64(j.Prompt), nanos(now))
}

// First implements Policy.
func (o *ledgerPolicy) First(f *Fleet, j *Job, now float64) {
	c := j.state.(*ledger.Charge)
	o.l.First(c, nanos(now))
	if !f.speeds[j.worker].InOrder {
		o.remember(j.worker, j)
	} else {
		o.hits[j.worker].Came(c.Prompt(), c.Believed())
	}
}

// remember notes that a worker has a prompt in its cache: as in the door once it
// is computed, or once it is sent to an engine that computes it before the next.
func (o *ledgerPolicy) remember(w int, j *Job) {
	o.table.Add(w, j.Blocks)
	if o.tells {
		o.untold = append(o.untold, cachedNews{w, j.Blocks})
	}
}

func (o *ledgerPolicy) grow(j *Job) {
	c := j.state.(*ledger.Charge)
	if n := int64(j.out) - c.Generated(); n > 0 {
		o.l.Grow(c, n)
	}
}

// Ended implements Policy.
func (o *ledgerPolicy) Ended(f *Fleet, j *Job, now float64) {
	c := j.state.(*ledger.Charge)
	o.grow(j)
	cached := int64(j.cached)
	if f.speeds[j.worker].InOrder {
		cached = -1 // vLLM's answers do not say, unless it is told to
	}
	o.l.Settle(c, int64(j.Prompt), cached)
	o.l.Release(c, ledger.Served, nanos(now))
	o.learned.Learn(ledger.Size{}, int64(j.Prompt), int64(j.out))
}

// Scraped implements Policy.
func (o *ledgerPolicy) Scraped(f *Fleet, now float64) {
	o.start(f, now)
	for i, w := range o.ws {
		for _, j := range f.engines[i].live() {
			if j.door == o.door {
				o.grow(j) // the door counts tokens as it relays them
			}
		}
		g := f.Seen[i]
		rep := ledger.Report{
			At: nanos(now), Used: int64(g.Usage * float64(f.speeds[i].Capacity)), Own: -1, Others: -1, Running: g.Running, Waiting: g.Waiting, Progress: -1,
		}
		if !f.speeds[i].InOrder {
			// Our worker says what it has still to compute, what it holds of whom and what
			// it has evicted.
			rep.HasPrefill, rep.PrefillTokens = true, int64(g.PrefillTokens)
			if rep.Own, rep.Others = rep.Used, 0; o.several {
				rep.Own, rep.Others = f.engines[i].resident(o.door)
			}
			o.table.Drop(i, g.Evicted)
		}
		o.l.Report(w, 1, rep)
		if !f.speeds[i].InOrder {
			continue
		}
		if m, ok := o.hits[i].Count(g.Queries, g.Hits, 1, o.l.Uncomputed(w)); ok {
			o.l.Counted(w, 1, m)
		}
	}
}

// book keeps what the other policies keep of their own traffic.
type book struct {
	name     string
	place    func(*book, *Fleet, *Job) int
	next     int
	requests []int            // in flight
	prefill  []int            // prompt tokens without a first token
	tokens   []int            // prompt tokens in flight
	polled   []int            // tokens sent since the last scrape
	seen     []map[uint64]int // prefix blocks sent
	rng      *rand.Rand
}

// Name implements Policy.
func (b *book) Name() string { return b.name }

// Place implements Policy.
func (b *book) Place(f *Fleet, j *Job, _ float64) int {
	if b.requests == nil {
		n := f.Workers()
		b.requests, b.prefill, b.tokens, b.polled = make([]int, n), make([]int, n), make([]int, n), make([]int, n)
		for range n {
			b.seen = append(b.seen, map[uint64]int{})
		}
		b.rng = rand.New(rand.NewPCG(f.Seed, 1))
	}
	w := b.place(b, f, j)
	b.requests[w]++
	miss := j.Prompt - b.hit(w, j)
	j.state = miss
	b.prefill[w] += miss
	b.tokens[w] += miss
	b.polled[w] += j.Prompt
	for _, blk := range j.Blocks {
		b.seen[w][blk]++
	}
	return w
}

func (b *book) hit(w int, j *Job) int {
	n := 0
	for _, blk := range j.Blocks {
		if b.seen[w][blk] == 0 {
			break
		}
		n += blockTokens
	}
	return min(n, j.Prompt)
}

// First implements Policy.
func (b *book) First(_ *Fleet, j *Job, _ float64) {
	b.prefill[j.worker] -= j.state.(int)
}

// Ended implements Policy.
func (b *book) Ended(_ *Fleet, j *Job, _ float64) {
	b.requests[j.worker]--
	b.tokens[j.worker] -= j.state.(int)
}

// Scraped implements Policy.
func (b *book) Scraped(*Fleet, float64) { clear(b.polled) }

// least returns the worker of the least score among those that are up.
func least(f *Fleet, score func(w int) float64) int {
	best, low := -1, math.Inf(1)
	for w := range f.Workers() {
		if !f.Up(w) {
			continue
		}
		if s := score(w); best < 0 || s < low {
			best, low = w, s
		}
	}
	return best
}

// leastGauge is the minimum of the scraped KV usage, as published routers do.
func leastGauge(_ *book, f *Fleet, _ *Job) int {
	return least(f, func(w int) float64 { return f.Seen[w].Usage })
}

func roundRobin(b *book, f *Fleet, _ *Job) int {
	for {
		b.next++
		if w := b.next % f.Workers(); f.Up(w) {
			return w
		}
	}
}

func leastRequest(b *book, f *Fleet, _ *Job) int {
	b.next++
	return least(f, func(w int) float64 {
		return float64(b.requests[w]) + 1e-6*float64((w+b.next)%f.Workers())
	})
}

func powerOfTwo(b *book, f *Fleet, _ *Job) int {
	one, two := b.rng.IntN(f.Workers()), b.rng.IntN(f.Workers())
	for !f.Up(one) {
		one = b.rng.IntN(f.Workers())
	}
	for !f.Up(two) {
		two = b.rng.IntN(f.Workers())
	}
	if b.requests[two] < b.requests[one] {
		return two
	}
	return one
}

func random(b *book, f *Fleet, _ *Job) int {
	w := b.rng.IntN(f.Workers())
	for !f.Up(w) {
		w = b.rng.IntN(f.Workers())
	}
	return w
}

// cacheAware is vllm-router's and sglang-router's of today: who was sent the most of
// the prompt, if that is three tenths of it; else, and where requests are spread too
// unevenly, the fewest requests. Older ones took who was sent the least text.
func cacheAware(b *book, f *Fleet, j *Job) int {
	low, high := math.Inf(1), 0.0
	for w := range f.Workers() {
		if f.Up(w) {
			low, high = min(low, float64(b.requests[w])), max(high, float64(b.requests[w]))
		}
	}
	match := least(f, func(w int) float64 { return -float64(b.hit(w, j)) })
	if float64(b.hit(match, j)) > 0.3*float64(j.Prompt) && (high-low <= 64 || high <= 1.5*low) {
		return match
	}
	return least(f, func(w int) float64 { return float64(b.requests[w]) })
}

// lmetric: tokens to prefill there, times the batch.
func lmetric(b *book, f *Fleet, j *Job) int {
	return least(f, func(w int) float64 {
		return float64(b.prefill[w]+j.Prompt-b.hit(w, j)) * float64(b.requests[w]+1)
	})
}

// smgLeastLoad: queued and in-flight tokens by throughput, with a barrier on
// KV; what was sent is forgotten at each poll.
func smgLeastLoad(b *book, f *Fleet, _ *Job) int {
	return least(f, func(w int) float64 {
		k := math.Min(f.Seen[w].Usage, .999)
		return float64(f.Seen[w].WaitingTokens+b.polled[w])/2000 + 0.15*k/(1-k)
	})
}

// dynamo: prefill blocks after overlap, plus decode blocks.
func dynamo(b *book, f *Fleet, j *Job) int {
	return least(f, func(w int) float64 {
		return math.Max(float64(b.prefill[w]+j.Prompt-b.hit(w, j)), 0) + float64(b.tokens[w]) + float64(j.Prompt)
	})
}

// llmdGate: those with four fifths of the prompt cached, unless the wait
// there is 18 s longer; then the least token load.
func llmdGate(b *book, f *Fleet, j *Job) int {
	wait := func(w int) float64 { return float64(b.prefill[w]) / 15928 }
	load := func(w int) float64 { return float64(b.tokens[w]) }
	sticky := -1
	for w := range f.Workers() {
		if f.Up(w) && j.Prompt > 0 && float64(b.hit(w, j)) >= 0.8*float64(j.Prompt) && (sticky < 0 || load(w) < load(sticky)) {
			sticky = w
		}
	}
	free := least(f, load)
	if sticky >= 0 && wait(sticky)-wait(free) <= 18 {
		return sticky
	}
	return free
}
