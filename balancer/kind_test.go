package balancer_test

import (
	"fmt"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// foreign has the worker set call every worker one that is scraped, as that of
// a door alone does.
func foreign(s *control.WorkerSet) {
	for i := range s.Pools[0].Workers {
		s.Pools[0].Workers[i].Kind = "vllm"
	}
}

// TestOwnWorkersByAddress gives the door workers of ours and nothing but their
// addresses: they are known by their status, and streams go on by token ids.
func TestOwnWorkersByAddress(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true, Words: 12}), sim.New(sim.Options{Own: true, Words: 12})
	a.DieAfter.Store(7)
	b.DieAfter.Store(7)
	r := newRig(t, []*sim.Worker{a, b}, foreign)
	_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, `,"tools":[{"type":"function","function":{"name":"f"}}]`))
	if s := hear(t, got); s.text != words(0, 12) || !s.done || s.failed || len(s.ids) != 1 {
		t.Fatalf("got %+v", s)
	}
	bodies := strings.Join(append(a.Bodies(), b.Bodies()...), "\n")
	if !strings.Contains(bodies, `"roundhouse_resume":{"id":"cmpl-1"`) {
		t.Errorf("the stream went on by other ways than token ids:\n%s", bodies)
	}
	if s := r.door.State().Workers[0]; s.Requests.PrefillTokens == nil {
		t.Error("the door does not read the worker's status")
	}
}

// TestWorkerOfAnotherKind has another kind of worker come up at an address, and
// the first kind again.
func TestWorkerOfAnotherKind(t *testing.T) {
	w := sim.New(sim.Options{Words: 3})
	w.Lie.Store("process_start_time_seconds 1\n")
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) { s.Pools[0].Scrape.Interval = 1 })
	own := func() bool {
		resp, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""))
		if s := hear(t, got); resp.StatusCode != 200 || s.text != words(0, 3) || s.failed {
			t.Fatalf("got %d %s", resp.StatusCode, got)
		}
		heads := w.Heads()
		return heads[len(heads)-1].Get("X-Roundhouse-Door") != ""
	}
	if own() {
		t.Fatal("a worker without a status stream is taken for ours")
	}
	for i := range 3 {
		w.Stop()
		w.Own = i%2 == 0
		w.Lie.Store(fmt.Sprintf("process_start_time_seconds %d\n", i+2))
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		r.until(fmt.Sprintf("process %d is known for what it is", i), func() bool { return own() == w.Own })
	}
}

// TestMixedPool kills workers of both kinds in one pool: a stream of ours goes
// on at ours, for no other worker knows how, and one of a vLLM at either.
func TestMixedPool(t *testing.T) {
	workers := []*sim.Worker{sim.New(sim.Options{Own: true, Words: 12}), sim.New(sim.Options{Words: 12}), sim.New(sim.Options{Own: true, Words: 12}), sim.New(sim.Options{Words: 12})}
	for _, w := range workers {
		w.DieAfter.Store(7)
	}
	r := newRig(t, workers, func(s *control.WorkerSet) { s.Pools[0].ReasoningEnd, s.Pools[0].Policy = "", "round_robin" })
	for range 2 * len(workers) {
		_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""))
		if s := hear(t, got); s.text != words(0, 12) || !s.done || s.failed || len(s.ids) != 1 {
			t.Fatalf("got %+v", s)
		}
	}
}
