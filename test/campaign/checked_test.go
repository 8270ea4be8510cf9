package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/test/counting"
	"roundhouse/test/system"
)

// checked are streams of checkable answers, and what became of them.
type checked struct {
	pause time.Duration // of a client after an answer, in the mean

	ending atomic.Bool
	whole  atomic.Int64
	doors  atomic.Int64 // odd while no door is there, as the test wants it
	full   atomic.Bool  // the door may turn clients away
	both   atomic.Bool  // both workers may end at once, with what is under way there

	mu     sync.Mutex
	fates  map[counting.Fate]int
	excuse int // lost with their door or with both workers, or refused by one that may
	first  error
	all    sync.WaitGroup
}

// keep keeps n streams going until stop.
func (c *checked) keep(t *testing.T, s *system.System, n int) {
	t.Helper()
	questions, err := counting.Questions(t.Context(), s.Door, 12, 21)
	if err != nil {
		t.Fatal(err)
	}
	c.fates = map[counting.Fate]int{}
	for i := range n {
		c.all.Go(func() {
			for k := i; !c.ending.Load(); k++ {
				if k > i {
					<-time.After(time.Duration(rand.IntN(2*int(c.pause) + 1)))
				}
				q := questions[k%len(questions)]
				at, full, both := c.doors.Load(), c.full.Load(), c.both.Load()
				ctx, cancel := context.WithTimeout(context.Background(), system.Patience)
				_, err := counting.Count(ctx, s.Door, q.From, q.To, nil)
				cancel()
				c.note(err, at%2 == 1 || c.doors.Load() != at, full || c.full.Load(), both || c.both.Load())
			}
		})
	}
}

// note counts an answer.
func (c *checked) note(err error, doorless, full, both bool) {
	fate := counting.FateOf(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.whole.Add(1)
	case doorless && fate != counting.Mixed, full && fate == counting.Refused, both && atBoth(err):
		c.excuse++
	default:
		c.fates[fate]++
		if c.first == nil {
			c.first = err
		}
	}
}

// atBoth reports whether an answer says that both workers ended.
func atBoth(err error) bool {
	return strings.Contains(err.Error(), "two workers died")
}

// stop waits for the last answers, and fails the test if one of them was not whole.
func (c *checked) stop(t *testing.T) {
	t.Helper()
	c.ending.Store(true)
	c.all.Wait()
	if len(c.fates) > 0 || c.whole.Load() == 0 {
		t.Errorf("checked answers: %s; the first: %v", c.String(), c.first)
	}
}

// bad is how many answers were not whole and had to be.
func (c *checked) bad() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, times := range c.fates {
		n += times
	}
	return n
}

func (c *checked) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d checked answers whole, %d lost, %d refused, %d mixed, %d lost with a door that was killed or with both workers at once, or refused by a door without descriptors",
		c.whole.Load(), c.fates[counting.Lost], c.fates[counting.Refused], c.fates[counting.Mixed], c.excuse)
}
