package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/test/counting"
)

// tally counts answers by what became of them, and how long their first token
// took while a rotation ran and while none did.
type tally struct {
	turning atomic.Bool // a rotation runs
	ending  atomic.Bool
	outages bool // all workers die at once: what was at two deaths is answered 500, by the law of docs/architecture.md
	whole   atomic.Int64
	twice   atomic.Int64 // answers that were refused so

	mu     sync.Mutex
	failed map[counting.Fate]int
	first  error
	steady []time.Duration
	during []time.Duration
	all    sync.WaitGroup
}

// keep keeps n streams of checkable answers of 61 numbers going until stop. One that
// fails is counted, and its stream goes on.
func (c *tally) keep(ctx context.Context, t *testing.T, s *system, n int) {
	t.Helper()
	c.keepOf(ctx, t, s, n, 61)
}

// keepOf is keep with answers of so many numbers.
func (c *tally) keepOf(ctx context.Context, t *testing.T, s *system, n, numbers int) {
	t.Helper()
	all, err := counting.Questions(ctx, s.Door, 24, numbers)
	if err != nil {
		t.Fatal(err)
	}
	c.failed = map[counting.Fate]int{}
	for i := range n {
		c.all.Go(func() {
			for k := 0; !c.ending.Load() && ctx.Err() == nil; k++ {
				q := all[(i+k*5)%len(all)]
				turning := c.turning.Load()
				first, err := counting.Count(ctx, s.Door, q.From, q.To, nil)
				c.note(turning || c.turning.Load(), first, err)
			}
		})
	}
}

func (c *tally) note(turning bool, first time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && c.outages && strings.Contains(err.Error(), "two workers died one after the other"):
		c.twice.Add(1)
	case err != nil:
		c.failed[counting.FateOf(err)]++
		if c.first == nil {
			c.first = err
		}
	case turning:
		c.during = append(c.during, first)
		c.whole.Add(1)
	default:
		c.steady = append(c.steady, first)
		c.whole.Add(1)
	}
}

// stop waits for the last answers, and fails the test if one of them was not whole.
func (c *tally) stop(t *testing.T) {
	t.Helper()
	c.ending.Store(true)
	c.all.Wait()
	if len(c.failed) > 0 {
		t.Errorf("answers that were not whole: %v; the first: %v", c.failed, c.first)
	}
}

// percentile is the time that all but 1-p of the answers stayed below.
func percentile(of []time.Duration, p float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Clone(of)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}

// table prints what a rotation cost.
func (c *tally) table(rotations, workers, streams int) string {
	steady, during := percentile(c.steady, 0.99), percentile(c.during, 0.99)
	ratio := 0.0
	if steady > 0 {
		ratio = float64(during) / float64(steady)
	}
	return fmt.Sprintf("\n| rotations | workers | streams | answers | lost | refused | mixed | p99 TTFT, steady | in rotation | ratio |\n"+
		"|---|---|---|---|---|---|---|---|---|---|\n| %d | %d | %d | %d | %d | %d | %d | %v | %v | %.2f |\n",
		rotations, workers, streams, c.whole.Load(), c.failed[counting.Lost], c.failed[counting.Refused], c.failed[counting.Mixed],
		steady.Round(time.Millisecond), during.Round(time.Millisecond), ratio)
}
