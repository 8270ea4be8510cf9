package main

import (
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
)

// TestReloadKeepsDrains puts another configuration in force at a door that runs
// alone: who was drained stays drained, and nobody else is.
func TestReloadKeepsDrains(t *testing.T) {
	set := func(workers ...control.Worker) *control.WorkerSet {
		return &control.WorkerSet{Pools: []control.Pool{{Name: "p", Workers: workers}, {Name: "q", Workers: []control.Worker{{Name: "1", State: "ready"}}}}}
	}
	now := set(control.Worker{Name: "1", State: "draining", Reason: "operator"}, control.Worker{Name: "2", State: "ready"}, control.Worker{Name: "gone", State: "draining"})
	next := set(control.Worker{Name: "new", State: "ready"}, control.Worker{Name: "2", State: "ready"}, control.Worker{Name: "1", State: "ready"})
	keepDrains(next, now)
	for _, p := range next.Pools {
		for _, w := range p.Workers {
			want := phase.Ready
			if p.Name == "p" && w.Name == "1" {
				want = phase.Draining
			}
			if w.State != want {
				t.Errorf("%s/%s is %s, want %s", p.Name, w.Name, w.State, want)
			}
		}
	}
}
