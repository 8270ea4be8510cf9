// Package beat has the instants at which a door does what is due by time alone. All
// that is done as often is done at the same instants, so that a door with nothing else
// to do wakes once for all of it.
package beat

import (
	"context"
	"math/rand/v2"
	"time"
)

// epoch is a moment of this program's own: the doors of one machine do not all beat at
// once.
var epoch = time.Now().Add(-rand.N(time.Hour))

// Next is the time until the next beat of a span, so long after those of others. A beat
// that is nearer than half the span is left out: who is slow comes no more often.
func Next(every, after time.Duration) time.Duration {
	since := (time.Since(epoch) - after) % every
	if since < 0 {
		since += every
	}
	left := every - since
	if 2*left < every {
		left += every
	}
	return left
}

// Run calls do at every beat until ctx ends.
func Run(ctx context.Context, every time.Duration, do func()) {
	t := time.NewTimer(Next(every, 0))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		do()
		t.Reset(Next(every, 0))
	}
}
