package test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// soakFor is how long the tests that soak go on; `make soak` gives them longer.
var soakFor = flag.Duration("for", 20*time.Second, "how long workers are killed under load")

// TestKilledWorkerLosesNothing kills a random worker outright every five
// seconds, under streams of checkable answers: each goes on at another worker
// and is right, none fails, and the worker comes back to full strength before
// the next is killed.
func TestKilledWorkerLosesNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 6))
	s := start(t, fmt.Sprintf(twoWorkers, `"--pace", "5ms"`))
	ctx, cancel := context.WithTimeout(t.Context(), *soakFor+testTime)
	defer cancel()

	var answers tally
	answers.keep(ctx, t, s, 16)
	beat := time.NewTicker(5 * time.Second)
	defer beat.Stop()
	kills := 0
	var longest time.Duration
	for began := time.Now(); time.Since(began) < *soakFor; kills++ {
		workers := s.known()
		target := workers[r.IntN(len(workers))]
		since := answers.whole.Load()
		poll(t, "answers under way", func() bool { return answers.whole.Load() > since+4 }, s.out.String)
		killed := time.Now()
		if err := syscall.Kill(target.Place.PID, syscall.SIGKILL); err != nil {
			t.Errorf("kill %s: %v", target.ID, err)
		}
		poll(t, target.ID+" replaced", func() bool {
			for _, w := range s.workers() {
				if w.ID == target.ID {
					return w.State == "ready" && w.Place.PID != target.Place.PID
				}
			}
			return false
		}, s.out.String)
		longest = max(longest, time.Since(killed))
		<-beat.C
	}
	answers.stop(t)
	t.Logf("%d kills in %v, %d answers, not whole: %v, full strength again after at most %v", kills, *soakFor, answers.whole.Load(), answers.failed, longest.Round(time.Millisecond))
}
