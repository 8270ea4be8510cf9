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

// TestDrainEndsUnderParked: the end of its old worker's drain says nothing to a
// stream that is parked: it is not sent there once more, and goes on where a
// worker comes up.
func TestDrainEndsUnderParked(t *testing.T) {
	slow := sim.Options{Own: true, Words: 20, Pace: time.Minute}
	a, b := sim.New(slow), sim.New(slow)
	r := newRig(t, []*sim.Worker{a, b}, func(s *control.WorkerSet) { s.Pools[0].Workers[1].State = "starting" })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""), "X-Request-Id", "mine")
	}()
	is := func(state, worker string, output int64) func() bool {
		return func() bool {
			q := r.door.Requests()
			return len(q) == 1 && q[0].State == state && q[0].Worker == worker && q[0].Output >= output
		}
	}
	r.until("the stream has begun", is("streaming", "p/1", 1))
	later := time.Now().Add(time.Hour)
	r.reset(func(workers []control.Worker) { workers[0].State, workers[0].Deadline = "draining", &later })
	a.Stop()
	r.until("the stream is parked", is("parked", "p/1", 1))
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	r.until("its worker is there again", func() bool { return r.door.State().Workers[0].Reached })
	set := r.set
	set.Version = 3
	set.Pools[0].Workers[0].State, set.Pools[0].Workers[0].Deadline = "draining", new(time.Time)
	if _, err := r.door.Apply(set); err != nil {
		t.Fatal(err)
	}
	r.door.EverySecond()
	set.Version, set.Pools[0].Workers[1].State = 4, "ready"
	if _, err := r.door.Apply(set); err != nil {
		t.Fatal(err)
	}
	r.until("it goes on at the other worker", is("streaming", "p/2", 1))
	if n := a.Served.Load(); n != 1 {
		t.Errorf("the worker that drained was asked %d times; want once", n)
	}
	r.door.Cancel("mine")
	<-ended
}
