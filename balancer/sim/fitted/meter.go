package fitted

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"roundhouse/balancer/sim"
)

// The worker's own clocks.
const (
	firstToken = "vllm:time_to_first_token_seconds"
	gaps       = "vllm:inter_token_latency_seconds"
)

// Meter takes measurements of one worker.
type Meter struct {
	w      *worker
	rng    *rand.Rand
	budget int
}

// Point is a piece of work of known make-up, and how long it took: steps,
// prompt tokens, pairs of them, tokens chosen, and context read for these.
type Point struct {
	Name             string
	Measured, Fitted float64 // seconds
	basis            []float64
}

// prompt draws token ids that no prompt before began with, so that nothing of
// it is cached.
func (m *Meter) prompt(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 300 + m.rng.IntN(1000)
	}
	return out
}

type (
	promptPoint struct{ tokens, rounds int }
	streamPoint struct{ n, tokens int }
)

// points measures prompts alone, and equal streams decoding together.
func (m *Meter) points(ctx context.Context, short bool) (points []Point, err error) {
	prompts := []promptPoint{{64, 4}, {128, 3}, {256, 3}, {512, 3}, {1024, 2}, {2000, 1}}
	streams := []streamPoint{{1, 64}, {2, 64}, {4, 64}, {8, 64}, {16, 64}, {32, 64}, {1, 1500}, {4, 1000}, {8, 500}}
	if room := m.w.longest; room > 0 { // the streams that are measured go on for up to a thousand tokens
		prompts = slices.DeleteFunc(prompts, func(p promptPoint) bool { return p.tokens+8 > room })
		streams = slices.DeleteFunc(streams, func(s streamPoint) bool { return s.tokens+200 > room })
	}
	if short {
		prompts, streams = prompts[:min(4, len(prompts))], streams[min(1, len(streams)):min(5, len(streams))]
		for i := range prompts {
			prompts[i].rounds = 1
		}
	}
	if _, err := m.first(ctx, 64, 2); err != nil { // the weights are touched for the first time
		return nil, err
	}
	for _, p := range prompts {
		took, err := m.first(ctx, p.tokens, p.rounds)
		if err != nil {
			return nil, err
		}
		n := float64(p.tokens)
		points = append(points, Point{fmt.Sprintf("a prompt of %d tokens", p.tokens), took, 0, []float64{math.Ceil(n / float64(m.budget)), n, n * n / 2, 1, 0}})
	}
	for _, s := range streams {
		took, reads, err := m.gap(ctx, s.n, s.tokens)
		if err != nil {
			return nil, err
		}
		points = append(points, Point{fmt.Sprintf("%d streams of %d tokens", s.n, s.tokens), took, 0, []float64{1, 0, 0, float64(s.n), float64(s.n) * reads}})
	}
	return points, nil
}

// first is the time to the first token of one prompt alone, by the worker's
// clock: the least of some, for whatever else the machine does only adds to it.
func (m *Meter) first(ctx context.Context, tokens, rounds int) (float64, error) {
	least := math.Inf(1)
	for range rounds {
		before, err := m.w.clocks(ctx, firstToken)
		if err != nil {
			return 0, err
		}
		s := m.w.ask(ctx, m.prompt(tokens), 1)
		if <-s.ended; s.err != nil {
			return 0, s.err
		}
		after, err := m.w.clocks(ctx, firstToken)
		if err != nil {
			return 0, err
		}
		if after[0].count != before[0].count+1 {
			return 0, fmt.Errorf("the worker counts %v first tokens for one request", after[0].count-before[0].count)
		}
		least = min(least, after[0].sum-before[0].sum)
	}
	return least, nil
}

// gap is the time between two tokens while n streams decode, by the worker's
// clock: the least of some windows; reads is the context of each in the mean.
func (m *Meter) gap(ctx context.Context, n, tokens int) (took, reads float64, err error) {
	const windows, window = 4, 600 * time.Millisecond
	ctx, cancel := context.WithCancel(ctx)
	var all []*stream
	defer func() {
		cancel()
		for _, s := range all {
			<-s.ended
		}
	}()
	for range n {
		all = append(all, m.w.ask(ctx, m.prompt(tokens), m.most(tokens)))
	}
	for _, s := range all {
		if at := <-s.first; at.IsZero() {
			<-s.ended
			return 0, 0, s.err
		}
	}
	took = math.Inf(1)
	before, err := m.w.clocks(ctx, gaps)
	if err != nil {
		return 0, 0, err
	}
	began := before[0].count
	for range windows {
		time.Sleep(window)
		after, err := m.w.clocks(ctx, gaps)
		if err != nil {
			return 0, 0, err
		}
		if c := after[0].count - before[0].count; c > 0 {
			took = min(took, (after[0].sum-before[0].sum)/c)
		}
		before = after
	}
	// The first to begin have some tokens more than the last; half of what all made
	// meanwhile is the mean.
	return took, float64(tokens) + (before[0].count-began)/float64(n)/2 + float64(n)/2, nil
}

// Check plays mixed traffic of n requests at a load of 60 % on the worker, and on the
// simulated engine.
func (m *Meter) Check(ctx context.Context, speed sim.Speed, n int, seed uint64) (real, simulated sim.Outcome, err error) {
	rng := rand.New(rand.NewPCG(seed, 9))
	jobs := make([]sim.Job, n)
	work := 0.0
	for i := range jobs {
		j := &jobs[i]
		j.Prompt, j.Output = 50+rng.IntN(400), 10+rng.IntN(30)
		if rng.IntN(6) == 0 {
			j.Prompt = 600 + rng.IntN(1000)
		}
		j.Prompt = min(j.Prompt, speed.Longest-j.Output)
		work += speed.Work(j)
	}
	at := 0.0
	for i := range jobs {
		at += rng.ExpFloat64() * work / float64(n) / 0.6
		jobs[i].At = at
	}
	streams := make([]*stream, n)
	began := time.Now()
	for i, j := range jobs {
		time.Sleep(time.Until(began.Add(time.Duration(j.At * float64(time.Second)))))
		streams[i] = m.w.ask(ctx, m.prompt(j.Prompt), j.Output)
	}
	var ttft, tpot, e2el []float64
	var errs []error
	for i, s := range streams {
		first := <-s.first
		<-s.ended
		errs = append(errs, s.err)
		ttft, e2el = append(ttft, first.Sub(s.sent).Seconds()), append(e2el, s.last.Sub(s.sent).Seconds())
		tpot = append(tpot, s.last.Sub(first).Seconds()/float64(jobs[i].Output-1))
	}
	if err := errors.Join(errs...); err != nil {
		return real, simulated, err
	}
	real.TTFT, real.TPOT, real.E2EL = sim.SpreadOf(ttft), sim.SpreadOf(tpot), sim.SpreadOf(e2el)
	return real, sim.Run(&sim.Scenario{Workers: []sim.Speed{speed}, Stale: 0.25, Jobs: jobs}, sim.Policies()[0](), 1), nil
}

// most is how many tokens a stream may generate behind its prompt.
func (m *Meter) most(prompt int) int {
	if m.w.longest == 0 {
		return 1000
	}
	return min(1000, m.w.longest-prompt-8)
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
