package balancer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// A request whose worker has said nothing yet when that worker's drain is over begins
// anew at another one, and so it does where several workers leave at once.
func TestForcedDrainBeforeTheFirstByte(t *testing.T) {
	for _, stream := range []bool{true, false} {
		silent := sim.Options{Own: true, Prefill: time.Hour}
		a, b, c := sim.New(silent), sim.New(silent), sim.New(sim.Options{Own: true, Words: 20})
		r := newRig(t, []*sim.Worker{a, b, c}, func(s *control.WorkerSet) { s.Pools[0].Workers[2].State = "starting" })
		answer := make(chan string, 4)
		for range cap(answer) {
			go func() {
				_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, stream, ""))
				answer <- got
			}()
		}
		r.until("all wait for their first byte", func() bool { return a.Live.Load() == 2 && b.Live.Load() == 2 })
		now := time.Now()
		r.reset(func(workers []control.Worker) {
			for i := range 2 {
				workers[i].State, workers[i].Deadline = "draining", &now
			}
			workers[2].State = "ready"
		})
		for range cap(answer) {
			got := <-answer
			if !stream {
				if want := words(0, 20); !strings.Contains(got, want) {
					t.Errorf("got %s", got)
				}
			} else if s := hear(t, got); s.text != words(0, 20) || !s.done || s.failed {
				t.Errorf("got %+v", s)
			}
		}
	}
}
