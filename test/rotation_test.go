package test

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"
)

// TestRotationLosesNothing keeps 32 streams of checkable answers going while
// every worker is rotated three times.
func TestRotationLosesNothing(t *testing.T) {
	s := start(t, fmt.Sprintf(twoWorkers, `"--pace", "5ms"`))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	answers, failed, stop := keepAsking(ctx, t, s, 32)
	before := s.workers()
	for turn := 1; turn <= 3 && !failed.Load(); turn++ {
		rotate := exec.CommandContext(ctx, program(t, "roundhouse"), "rotate", "chat", "--admin", s.Admin)
		if out, err := rotate.CombinedOutput(); err != nil {
			t.Errorf("rotation %d: %v\n%s", turn, err, out)
			break
		}
	}
	stop()

	after := s.workers()
	for i, w := range after {
		if i < len(before) && (w.Generation < before[i].Generation+3 || w.Place.PID == before[i].Place.PID) {
			t.Errorf("%s was not rotated three times: generation %d, was %d", w.ID, w.Generation, before[i].Generation)
		}
	}
	t.Logf("%d answers, all right, over %d turns", answers.Load(), 3*len(after))
}
