package sim

import (
	"math"
	"testing"
)

// One request alone takes what its steps take, by bench's definitions.
func TestOutcome(t *testing.T) {
	s := Speed{Base: 0.01, PerPrefill: 0.001, PerDecode: 0.002, Budget: 100, Capacity: 10_000, Longest: 5000}
	one := Scenario{Workers: []Speed{s}, Jobs: []Job{{At: 1, Prompt: 150, Output: 11}}, Goal: Goal{TTFT: 0.2, TPOT: 0.0121}}
	o := Run(&one, Policies()[0](), 1)
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %g; want %g", name, got, want)
		}
	}
	near("TTFT", o.TTFT.P50, 0.11+0.06+0.002) // two steps of a prompt, and its first token
	near("TPOT", o.TPOT.P95, 0.012)
	near("E2EL", o.E2EL.Mean, 0.172+10*0.012)
	near("queue", o.Queue.P99, 0)
	near("good", o.Good, 1)
	if o.Tokens != 11 || o.Preemptions != 0 {
		t.Errorf("%+v", o)
	}
	one.Goal.TTFT = 0.1
	near("good of a quicker goal", Run(&one, Policies()[0](), 1).Good, 0)
}

// Fewer seats make requests wait, and a small cache throws them out.
func TestSeatsAndPreemptions(t *testing.T) {
	s := Speed{Base: 0.01, PerPrefill: 1e-4, Budget: 512, Capacity: 100_000, Longest: 5000, InOrder: true}
	many := Scenario{Workers: []Speed{s}, Stale: 0.25}
	for i := range 40 {
		many.Jobs = append(many.Jobs, Job{At: float64(i) / 1000, Prompt: 100, Output: 200})
	}
	roomy := Run(&many, Policies()[8](), 1) // one that never holds requests at the door
	many.Workers[0].Seats = 4
	few := Run(&many, Policies()[8](), 1)
	if few.Queue.P95 < 5*roomy.Queue.P95 || few.TPOT.P50 > roomy.TPOT.P50+1e-9 {
		t.Errorf("with 4 seats %+v; with 256 %+v", few.Queue, roomy.Queue)
	}
	many.Workers[0].Seats, many.Workers[0].Capacity = 0, 6000
	if o := Run(&many, Policies()[8](), 1); o.Preemptions == 0 || roomy.Preemptions != 0 {
		t.Errorf("%d and %d preemptions", o.Preemptions, roomy.Preemptions)
	}
}
