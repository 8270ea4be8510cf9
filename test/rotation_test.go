package test

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
)

// TestRotationLosesNothing keeps streams of checkable answers going while every
// worker is rotated three times: none is lost, refused or mixed. The same with
// more of everything is `make bench-rotation`.
func TestRotationLosesNothing(t *testing.T) {
	const rotations, streams = 3, 32
	s := start(t, fmt.Sprintf(twoWorkers, `"--pace", "5ms"`))
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()

	var answers tally
	answers.keep(ctx, t, s, streams)
	before := s.known()
	for turn := 1; turn <= rotations; turn++ {
		since := answers.whole.Load() // as many answers in peace as there are streams
		poll(t, "answers in peace", func() bool { return answers.whole.Load() > since+streams }, s.out.String)
		answers.turning.Store(true)
		rotate := exec.CommandContext(ctx, built.Path(t, "roundhouse"), "rotate", "chat", "--admin", s.Admin)
		out, err := rotate.CombinedOutput()
		answers.turning.Store(false)
		if err != nil {
			t.Errorf("rotation %d: %v\n%s", turn, err, out)
			break
		}
	}
	answers.stop(t)

	for i, w := range s.known() {
		if i < len(before) && (w.Generation < before[i].Generation+rotations || w.Place.PID == before[i].Place.PID) {
			t.Errorf("%s was not rotated %d times: generation %d, was %d", w.ID, rotations, w.Generation, before[i].Generation)
		}
	}
	t.Log(answers.table(rotations, len(before), streams))
}
