package supervisor

import (
	"testing"
	"time"

	"roundhouse/balancer/control/keyfile"
	"roundhouse/configs"
	"roundhouse/supervisor/core"
)

// The doors are told how long requests wait while a turn leaves a pool with nobody, and
// how long the longest drain is.
func TestSetTellsOfGaps(t *testing.T) {
	f := func(workers, minReady int, r core.Rotation, want time.Duration) {
		t.Helper()
		s := &Supervisor{fleet: newFleet(), clock: clock{}.resume(), keys: new(keyfile.Store)}
		cfg := &configs.Config{Pools: []configs.Pool{{Name: "p", Workers: counted(workers)}}}
		p := core.Pool{Name: "p", MinReady: minReady, Drain: 20 * time.Minute, Ready: 15 * time.Minute}
		for i := range workers {
			p.Workers = append(p.Workers, core.Spec{Name: cfg.Pools[0].Workers[i].Name})
		}
		s.plan = &deployment{config: cfg, pools: []core.Pool{p}}
		s.memory.intent.Rotations = map[string]core.Rotation{"p": r}
		set := s.workerSet()
		if got := time.Duration(set.Pools[0].PatienceSeconds * 1e9); got != want {
			t.Errorf("%d workers, %+v: %v; want %v", workers, r, got, want)
		}
		if set.DrainSeconds != 1200 {
			t.Errorf("the drain is %v s", set.DrainSeconds)
		}
	}
	running := core.Rotation{State: core.Running, Current: "1"}
	f(1, 0, running, 35*time.Minute)
	f(2, 0, running, 35*time.Minute)
	f(2, 1, running, 0) // the other one serves
	f(1, 0, core.Rotation{State: core.Running, Queue: []string{"1"}}, 0)
	f(1, 0, core.Rotation{State: core.Halted, Current: "1"}, 0)
}
