package test

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// How often, how many and under how much load; `make bench-rotation` asks for more.
var (
	rotations = flag.Int("rotations", 3, "how often every worker takes its turn")
	workers   = flag.Int("workers", 2, "of the pool")
	streams   = flag.Int("streams", 32, "of checkable answers at once")
)

// TestRotationLosesNothing keeps streams of checkable answers going while every
// worker is rotated several times: none is lost, refused or mixed.
func TestRotationLosesNothing(t *testing.T) {
	pool := strings.Replace(fmt.Sprintf(twoWorkers, `"--pace", "5ms", "--max-num-seqs", "40"`), "workers = 2", fmt.Sprintf("workers = %d", *workers), 1)
	s := start(t, pool)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(*rotations)*2*time.Minute)
	defer cancel()

	var answers tally
	answers.keep(ctx, t, s, *streams)
	before := s.workers()
	for turn := 1; turn <= *rotations; turn++ {
		since := answers.whole.Load() // as many answers in peace as there are streams
		poll(t, time.Minute, "answers in peace", func() bool { return answers.whole.Load() > since+int64(*streams) }, s.out.String)
		answers.turning.Store(true)
		rotate := exec.CommandContext(ctx, program(t, "roundhouse"), "rotate", "chat", "--admin", s.Admin)
		out, err := rotate.CombinedOutput()
		answers.turning.Store(false)
		if err != nil {
			t.Errorf("rotation %d: %v\n%s", turn, err, out)
			break
		}
	}
	answers.stop(t)

	for i, w := range s.workers() {
		if i < len(before) && (w.Generation < before[i].Generation+*rotations || w.Place.PID == before[i].Place.PID) {
			t.Errorf("%s was not rotated %d times: generation %d, was %d", w.ID, *rotations, w.Generation, before[i].Generation)
		}
	}
	t.Log(answers.table(*rotations, *workers, *streams))
}
