package main

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

// meter takes measurements of one worker.
type meter struct {
	w   *worker
	rng *rand.Rand
}

// point is a piece of work of known make-up, and how long it took: steps,
// prompt tokens, pairs of them, tokens chosen, and context read for these.
type point struct {
	name     string
	measured float64 // seconds
	basis    []float64
}

// prompt draws token ids that no prompt before began with, so that nothing of
// it is cached.
func (m *meter) prompt(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 300 + m.rng.IntN(1000)
	}
	return out
}

// points measures prompts alone, and equal streams decoding together.
func (m *meter) points(ctx context.Context, short bool) (points []point, err error) {
	prompts := []struct{ tokens, rounds int }{{64, 4}, {128, 3}, {256, 3}, {512, 3}, {1024, 2}, {2000, 1}}
	streams := []struct{ n, tokens int }{{1, 64}, {2, 64}, {4, 64}, {8, 64}, {16, 64}, {32, 64}, {1, 1500}, {4, 1000}, {8, 500}}
	if short {
		prompts, streams = prompts[:4], streams[1:5]
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
		points = append(points, point{fmt.Sprintf("a prompt of %d tokens", p.tokens), took, []float64{math.Ceil(n / budget), n, n * n / 2, 1, 0}})
	}
	for _, s := range streams {
		took, reads, err := m.gap(ctx, s.n, s.tokens)
		if err != nil {
			return nil, err
		}
		points = append(points, point{fmt.Sprintf("%d streams of %d tokens", s.n, s.tokens), took, []float64{1, 0, 0, float64(s.n), float64(s.n) * reads}})
	}
	return points, nil
}

// first is the time to the first token of one prompt alone, by the worker's
// clock: the least of some, for whatever else the machine does only adds to it.
func (m *meter) first(ctx context.Context, tokens, rounds int) (float64, error) {
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
func (m *meter) gap(ctx context.Context, n, tokens int) (took, reads float64, err error) {
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
		all = append(all, m.w.ask(ctx, m.prompt(tokens), 1000))
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

// check plays mixed traffic on the worker and on the simulated engine.
func (m *meter) check(ctx context.Context, speed sim.Speed, short bool, seed uint64) error {
	n := 36
	if short {
		n = 12
	}
	rng := rand.New(rand.NewPCG(seed, 9))
	jobs := make([]sim.Job, n)
	work := 0.0
	for i := range jobs {
		j := &jobs[i]
		j.Prompt, j.Output = 50+rng.IntN(400), 10+rng.IntN(30)
		if rng.IntN(6) == 0 {
			j.Prompt = 600 + rng.IntN(1000)
		}
		work += speed.Work(j)
	}
	at := 0.0
	for i := range jobs { // a load of 60 %
		at += rng.ExpFloat64() * work / float64(n) / 0.6
		jobs[i].At = at
	}
	streams := make([]*stream, n)
	began := time.Now()
	for i, j := range jobs {
		time.Sleep(time.Until(began.Add(time.Duration(j.At * float64(time.Second)))))
		streams[i] = m.w.ask(ctx, m.prompt(j.Prompt), j.Output)
	}
	real := make([]float64, n)
	var errs []error
	for i, s := range streams {
		real[i] = (<-s.first).Sub(s.sent).Seconds()
		<-s.ended
		errs = append(errs, s.err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	o := sim.Run(&sim.Scenario{Workers: []sim.Speed{speed}, Jobs: jobs}, sim.Policies()[0](), 1)
	slices.Sort(real)
	mean := 0.0
	for _, t := range real {
		mean += t / float64(n)
	}
	fmt.Printf("mixed traffic at 60 %% load, %d requests: time to first token, worker / simulated\n", n)
	for _, row := range []struct {
		name            string
		real, simulated float64
	}{{"mean", mean, o.Mean}, {"p50", real[n/2], o.P50}, {"p90", real[n*9/10], o.P90}} {
		fmt.Printf("  %-4s %7.2f / %7.2f s  %+5.1f %%\n", row.name, row.real, row.simulated, 100*(row.simulated/row.real-1))
	}
	return nil
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
