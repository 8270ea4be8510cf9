package fitted

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
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
	prompt           bool
	overhead         float64 // of a prompt: what its client waited besides
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
	prompts := []promptPoint{{64, 4}, {128, 3}, {256, 2}, {512, 2}, {1024, 1}, {2000, 1}}
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
	for _, p := range prompts {
		took, overhead, err := m.first(ctx, p.tokens, p.rounds)
		if err != nil {
			return nil, err
		}
		n := float64(p.tokens)
		points = append(points, Point{fmt.Sprintf("a prompt of %d tokens", p.tokens), took, 0, []float64{math.Ceil(n / float64(m.budget)), n, n * n / 2, 1, 0}, true, overhead})
	}
	for _, s := range streams {
		took, reads, err := m.gap(ctx, s.n, s.tokens)
		if err != nil {
			return nil, err
		}
		points = append(points, Point{fmt.Sprintf("%d streams of %d tokens", s.n, s.tokens), took, 0, []float64{1, 0, 0, float64(s.n), float64(s.n) * reads}, false, 0})
	}
	return points, nil
}

// Warm has the weights touched for the first time.
func (m *Meter) Warm(ctx context.Context) error {
	_, _, err := m.first(ctx, 64, 2)
	return err
}

// first is the time to the first token of one prompt alone, by the worker's clock, and how
// much longer its client waited: the means of some.
func (m *Meter) first(ctx context.Context, tokens, rounds int) (took, overhead float64, err error) {
	for range rounds {
		before, err := m.w.clocks(ctx, firstToken)
		if err != nil {
			return 0, 0, err
		}
		s := m.w.ask(ctx, m.prompt(tokens), 1)
		came := <-s.first
		if <-s.ended; s.err != nil {
			return 0, 0, s.err
		}
		after, err := m.w.clocks(ctx, firstToken)
		if err != nil {
			return 0, 0, err
		}
		if after[0].count != before[0].count+1 {
			return 0, 0, fmt.Errorf("the worker counts %v first tokens for one request", after[0].count-before[0].count)
		}
		own := after[0].sum - before[0].sum
		took += own / float64(rounds)
		overhead += (came.Sub(s.sent).Seconds() - own) / float64(rounds)
	}
	return took, overhead, nil
}

// gap is the mean time between two tokens while n streams decode, by the worker's clock;
// reads is the context of each in the mean.
func (m *Meter) gap(ctx context.Context, n, tokens int) (took, reads float64, err error) {
	const window = 1200 * time.Millisecond
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
	before, err := m.w.clocks(ctx, gaps)
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(window)
	after, err := m.w.clocks(ctx, gaps)
	if err != nil {
		return 0, 0, err
	}
	count := after[0].count - before[0].count
	if count == 0 {
		return 0, 0, fmt.Errorf("%d streams of %d tokens got no token within %v: the worker is too slow, or busy with others", n, tokens, window)
	}
	// The first to begin have some tokens more than the last; half of what all made
	// meanwhile is the mean.
	return (after[0].sum - before[0].sum) / count, float64(tokens) + count/float64(n)/2 + float64(n)/2, nil
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
