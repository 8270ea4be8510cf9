package worker

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"roundhouse/worker/kv"
	"roundhouse/worker/workertest"
)

// day is scheduler and KV cache under a day's traffic on a simulated clock.
type day struct {
	t     *testing.T
	rng   *rand.Rand
	pool  *kv.Cache
	sched *Scheduler
	now   float64               // seconds
	next  float64               // when the next request comes
	left  map[*Sequence]int     // output tokens still to come
	until map[*Sequence]float64 // when it is aborted
	came  map[*Sequence]float64

	requests, steps, aborted, preempted int
	longest                             float64 // from arrival to end
}

// The engine of the simulation: what a step takes, and the traffic at noon.
const (
	daySeconds  = 24 * 3600
	stepSeconds = 0.030
	perToken    = 0.0002
	noonRate    = 8.0 // requests a second; a fifth of it at midnight
)

func newDay(t *testing.T, seed uint64, groups []kv.Group) *day {
	d := &day{
		t: t, rng: rand.New(rand.NewPCG(seed, 24)), left: map[*Sequence]int{}, until: map[*Sequence]float64{}, came: map[*Sequence]float64{},
		pool: kv.New(kv.Options{Groups: groups, PrefixCache: true, Key: kv.Key{byte(seed)}}),
	}
	d.sched = NewScheduler(d.pool, Limits{Tokens: 512, Seqs: 32, Rows: 64})
	return d
}

// wait is how long it is until another request comes at this hour.
func (d *day) wait() float64 {
	rate := noonRate * (0.6 - 0.4*math.Cos(2*math.Pi*d.now/daySeconds))
	return d.rng.ExpFloat64() / rate
}

// arrive adds a request of the Azure trace's lengths ÷ 8; half of them share
// one of eight beginnings, one in twenty is aborted.
func (d *day) arrive() {
	l := workertest.Lengths(d.rng)
	n := max(1, l.Prompt/8)
	tokens := make([]int32, n)
	shared := -1
	if d.rng.IntN(2) == 0 {
		shared = d.rng.IntN(8)
	}
	for i := range tokens {
		tokens[i] = int32(d.rng.IntN(1 << 15))
		if shared >= 0 && i < 200 {
			tokens[i] = int32(shared*1000 + i)
		}
	}
	q := &Sequence{Prompt: n, Tokens: tokens, Priority: d.rng.IntN(8) / 7}
	d.left[q], d.came[q] = max(1, l.Answer/8), d.now
	if d.rng.IntN(20) == 0 {
		d.until[q] = d.now + d.rng.ExpFloat64()/4
	}
	d.sched.Add(q)
	d.requests++
}

func (d *day) end(q *Sequence) {
	d.longest = max(d.longest, d.now-d.came[q])
	d.sched.Remove(q)
	delete(d.left, q)
	delete(d.until, q)
	delete(d.came, q)
}

// step runs what is there, or lets time pass until something comes.
func (d *day) step() {
	if len(d.left) == 0 {
		d.now = d.next
	}
	for d.now >= d.next {
		d.arrive()
		d.next += d.wait()
	}
	d.abort()
	plan := d.sched.Schedule()
	if len(plan.Entries) == 0 && len(d.left) > 0 {
		d.t.Fatalf("at %.0f s: %d sequences and none can run", d.now, len(d.left))
	}
	d.preempted += len(plan.Preempted)
	d.now += stepSeconds
	for _, e := range plan.Entries {
		d.now += perToken * float64(e.Count)
	}
	for _, e := range plan.Entries {
		if !e.Samples {
			d.sched.Commit(e, e.Start+e.Count)
			continue
		}
		e.Seq.Tokens = append(e.Seq.Tokens, int32(d.rng.IntN(1<<15)))
		d.sched.Commit(e, len(e.Seq.Tokens)-1)
		if d.left[e.Seq]--; d.left[e.Seq] == 0 {
			d.end(e.Seq)
		}
	}
	d.pool.TakeEvicted()
	if d.steps++; d.steps%5000 == 0 {
		d.check()
	}
}

// abort ends those whose client has left, in the order of their arrival, so that
// a seed gives the same day twice.
func (d *day) abort() {
	var gone []*Sequence
	for q, at := range d.until {
		if d.now >= at {
			gone = append(gone, q)
		}
	}
	slices.SortFunc(gone, func(a, b *Sequence) int { return cmp.Compare(a.order, b.order) })
	for _, q := range gone {
		d.end(q)
		d.aborted++
	}
}

func (d *day) check() {
	var tables []*kv.Table
	for q := range d.left {
		tables = append(tables, &q.Table)
	}
	if err := d.pool.Check(tables); err != nil {
		d.t.Fatalf("at %.0f s: %v", d.now, err)
	}
}

// TestDay holds over 24 simulated hours (three with -short) that every request ends, nobody waits
// for long, and no block is lost.
func TestDay(t *testing.T) {
	const seed = 1
	d := newDay(t, seed, []kv.Group{{Blocks: 120, BlockTokens: 16}, {Blocks: 120, BlockTokens: 16, Window: 256}})
	end := float64(daySeconds)
	if testing.Short() { // under the race detector
		end /= 8
	}
	for d.now < end {
		d.step()
	}
	for d.next = math.Inf(1); len(d.left) > 0; {
		d.step()
	}
	d.check()
	queries, hits := d.pool.Counts()
	t.Logf("seed %d: %d requests, %d aborted, %d steps, %d preemptions, the longest took %.1f s, %.0f %% from the cache",
		seed, d.requests, d.aborted, d.steps, d.preempted, d.longest, 100*float64(hits)/float64(queries))
	if used := d.pool.UsedTokens(); used != 0 || !d.pool.Reset() {
		t.Fatalf("seed %d: %d tokens are held by nobody at the day's end", seed, used)
	}
	if d.longest > 120 || d.preempted == 0 && !testing.Short() || hits == 0 || d.aborted == 0 {
		t.Fatalf("seed %d: a request took %.1f s; %d preemptions, %d tokens from the cache, %d aborted", seed, d.longest, d.preempted, hits, d.aborted)
	}
}
