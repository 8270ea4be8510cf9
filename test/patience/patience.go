// Package patience bounds how long a test waits for what must only happen at all. A limit
// by the clock bets on the machine: beside the builds of others a container takes minutes
// to begin. Here time counts by the share of the cores that a waiting test's programs get.
package patience

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"
)

// Limit is a time that passes more slowly where the machine is busy.
type Limit struct {
	left time.Duration
	at   time.Time
}

// For begins a limit that is over after d on an idle machine.
func For(d time.Duration) *Limit { return &Limit{left: d, at: time.Now()} }

// Over reports whether the limit has passed. Who waits asks again and again.
func (l *Limit) Over() bool {
	now := time.Now()
	l.left -= passed(now.Sub(l.at), load(), runtime.NumCPU())
	l.at = now
	return l.left <= 0
}

// Context ends once a limit of d has passed.
func Context(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for l := For(d); !l.Over(); {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		cancel()
	}()
	return ctx, cancel
}

// passed is what counts of a time in which so many threads wanted the cores.
func passed(t time.Duration, load float64, cores int) time.Duration {
	return time.Duration(float64(t) * min(1, float64(cores)/max(load, 1)))
}

// load is how many threads computed or waited for a disk, over the last minute; 0 where
// the machine does not tell.
func load() (n float64) {
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscan(string(text), &n)
	}
	if err != nil {
		return 0
	}
	return n
}
