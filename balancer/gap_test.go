package balancer_test

import (
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// While a turn leaves a pool with nobody its requests wait for the worker's start, not
// for max_wait; once the turn is over without one there is no worker.
func TestRequestsWaitForTheGap(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 5, Capacity: 400})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Door.Queue = configs.Queue{MaxRequests: 3, MaxWait: configs.Duration(20 * time.Millisecond)}
	})
	version := uint64(1)
	set := func(state phase.Phase, patience time.Duration) {
		t.Helper()
		version++
		next := r.set
		next.Version = version
		next.Pools = []control.Pool{next.Pools[0]}
		next.Pools[0].PatienceSeconds = patience.Seconds()
		next.Pools[0].Workers = []control.Worker{next.Pools[0].Workers[0]}
		next.Pools[0].Workers[0].State = state
		if _, err := r.door.Apply(next); err != nil {
			t.Fatal(err)
		}
	}
	status := make(chan int, 1)
	ask := func() {
		t.Helper()
		go func() {
			resp, _ := r.post("/v1/chat/completions", okBody)
			status <- resp.StatusCode
		}()
		r.until("it has waited for longer than max_wait", func() bool {
			q := r.door.Queued()
			return len(q) == 1 && time.Since(q[0].Since) > time.Second
		})
	}
	for _, end := range []struct {
		state phase.Phase
		want  int
	}{{"ready", 200}, {"starting", 503}} {
		set("starting", time.Hour)
		ask()
		set(end.state, 0)
		if got := <-status; got != end.want {
			t.Errorf("the turn ends with the worker %s: %d; want %d", end.state, got, end.want)
		}
	}
}
