package test

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRotationLosesNothing keeps 32 streams of checkable answers going while
// every worker is rotated three times.
func TestRotationLosesNothing(t *testing.T) {
	s := start(t, fmt.Sprintf(twoWorkers, `"--pace", "5ms"`))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	var ending atomic.Bool
	var answers atomic.Int64
	var streams sync.WaitGroup
	for i := range 32 {
		streams.Go(func() {
			for n := 0; !ending.Load(); n++ {
				a := 1 + (i*7+n*13)%50
				if err := count(ctx, s.Door, a, a+60); err != nil {
					t.Errorf("stream %d, answer %d: %v", i, n, err)
					ending.Store(true)
					return
				}
				answers.Add(1)
			}
		})
	}

	before := s.workers()
	for turn := 1; turn <= 3 && !ending.Load(); turn++ {
		rotate := exec.CommandContext(ctx, program(t, "roundhouse"), "rotate", "chat", "--admin", s.Admin)
		if out, err := rotate.CombinedOutput(); err != nil {
			t.Errorf("rotation %d: %v\n%s", turn, err, out)
			break
		}
	}
	ending.Store(true)
	streams.Wait()

	after := s.workers()
	for i, w := range after {
		if i < len(before) && (w.Generation < before[i].Generation+3 || w.Place.PID == before[i].Place.PID) {
			t.Errorf("%s was not rotated three times: generation %d, was %d", w.ID, w.Generation, before[i].Generation)
		}
	}
	t.Logf("%d answers, all right, over %d turns", answers.Load(), 3*len(after))
}
