package driver

import (
	"context"
	"time"
)

// Hint is that something has changed: given or not, and never waited for by who gives
// it. Hints that come before the last one was heard are one with it. Whoever hears it
// looks at what is, so that none must be counted. It is what Driver.Changed delivers.
type Hint chan struct{}

// NewHint returns a hint that is not given yet.
func NewHint() Hint { return make(Hint, 1) }

// Give gives the hint, from any goroutine.
func (h Hint) Give() {
	select {
	case h <- struct{}{}:
	default: // it is given already
	}
}

// Wait waits for a while, or until ctx ends.
func Wait(ctx context.Context, while time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(while):
	}
}
