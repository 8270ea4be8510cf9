package test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestKilledWorkerLosesNothing kills a worker outright, again and again, under
// streams of checkable answers: each goes on at another worker and is right,
// and the worker comes back.
func TestKilledWorkerLosesNothing(t *testing.T) {
	s := start(t, fmt.Sprintf(twoWorkers, `"--pace", "5ms"`))
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()

	answers, failed, stop := keepAsking(ctx, t, s, 16)
	for kill := range 4 {
		target := s.workers()[kill%2]
		since := answers.Load()
		poll(t, time.Minute, "answers under way", func() bool { return failed.Load() || answers.Load() > since+4 }, s.out.String)
		if err := syscall.Kill(target.Place.PID, syscall.SIGKILL); err != nil {
			t.Errorf("kill %s: %v", target.ID, err)
		}
		poll(t, time.Minute, target.ID+" replaced", func() bool {
			for _, w := range s.workers() {
				if w.ID == target.ID {
					return w.State == "ready" && w.Place.PID != target.Place.PID
				}
			}
			return false
		}, s.out.String)
	}
	stop()
	t.Logf("%d answers, all right, over 4 kills", answers.Load())
}
