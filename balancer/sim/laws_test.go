package sim

import (
	"testing"

	"roundhouse/balancer/ledger"
)

// TestLaws plays traffic through the door near the knee and looks after every event.
// While requests wait at the door no engine is idle, and hardly one in twenty of the steps
// that engines begin leaves out a prompt that it could have begun. What answers will
// hold one day keeps nobody waiting.
func TestLaws(t *testing.T) {
	for _, c := range []Cell{
		{Traffic: "long-short", Bound: "prompts", Share: 1.05, Age: 1}, {Traffic: "long-short", Bound: "kv", Share: 1.05, Age: 1},
		{Traffic: "long-short", Bound: "kv", Share: 1.05, Age: 5}, {Traffic: "long-short", Bound: "seats", Share: 1.05, Age: 1},
		{Traffic: "reasoning", Bound: "kv", Share: 1.2, Age: 1},
	} {
		s, err := c.Scenario(16, 7)
		if err != nil {
			t.Fatal(err)
		}
		waited, steps, leftOut := 0, 0, 0
		began := make([]float64, peers)
		run(&s, newLedgerPolicy(ledger.LeastKV), 7, func(f *Fleet) {
			waits := len(f.queued) > 0 && len(f.queued[0]) > 0
			for i := range f.engines {
				e := f.engines[i].(*ordered)
				if waits && e.idle() {
					t.Fatalf("%s: at %.3f s %d requests wait at the door, and engine %d is idle", c, f.now, len(f.queued[0]), i)
				}
				if waits && e.until != began[i] {
					steps++
					if e.leavesOut(f.queued[0]) {
						leftOut++
					}
				}
				began[i] = e.until
			}
			if waits {
				waited++
			}
		})
		t.Logf("%s: requests waited after %d events; of %d steps meanwhile %d left one out", c, waited, steps, leftOut)
		if leftOut*20 > steps {
			t.Errorf("%s: of %d steps begun while requests waited at the door %d left out one that they could have begun", c, steps, leftOut)
		}
		if waits := c.Traffic != "reasoning"; waits != (waited > 0) {
			t.Errorf("%s: requests waited after %d events", c, waited)
		}
	}
}

// leavesOut reports whether the step that the engine has just begun leaves out a prompt as
// long as one of these, which it could have begun.
func (o *ordered) leavesOut(held []*Job) bool {
	b := &o.batch
	if len(b.waiting) > 0 || o.under.Prefills+o.under.Decodes >= b.Budget || len(b.running) >= b.Seats {
		return false
	}
	for _, j := range held {
		if b.used+(j.Prompt+b.Block-1)/b.Block <= b.Blocks {
			return true
		}
	}
	return false
}
