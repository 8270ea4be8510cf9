package sim

import (
	"testing"

	"roundhouse/balancer/ledger"
)

// TestFleet plays every policy on every scenario: each request is answered,
// and the same seed gives the same outcome.
func TestFleet(t *testing.T) {
	scale := 0.05
	if testing.Short() {
		scale = 0.01
	}
	all := append(Scenarios(Fitted, 3, scale), Scenarios(Accelerator, 3, scale)...)
	for i := range all {
		for _, make := range Policies() {
			one, two := Run(&all[i], make(), 3), Run(&all[i], make(), 3)
			if one != two {
				t.Errorf("%s, %s: %+v, then %+v", all[i].Name, one.Policy, one, two)
			}
			if one.P99 > 1e6 {
				t.Errorf("%s, %s: requests were lost", all[i].Name, one.Policy)
			}
		}
	}
}

// TestEngineKeepsItsLimits looks at an engine's KV after every step.
func TestEngineKeepsItsLimits(t *testing.T) {
	s := Fitted
	s.Capacity = 3000
	e := newEngine(s)
	for i := range 40 {
		e.add(&Job{Prompt: 100 + 50*i%700, Output: 60}, 0)
	}
	now, ended := 0.0, 0
	for range 10_000 {
		if e.idle() {
			break
		}
		until := e.step(now)
		_, finished := e.ended()
		if until <= now {
			t.Fatal("a step takes time")
		}
		now, ended = until, ended+len(finished)
		sum := 0
		for _, j := range e.running {
			sum += j.tokens()
		}
		// The newest tokens are placed, or room is made for them, with the next step.
		if sum != e.blocks.used || e.blocks.used > s.Capacity+len(e.running) {
			t.Fatalf("%d tokens are used, the running requests hold %d of %d", e.blocks.used, sum, s.Capacity)
		}
	}
	if ended != 40 {
		t.Fatalf("%d of 40 requests ended", ended)
	}
}

// TestDoors plays one fleet's traffic through four doors: with their totals
// exchanged they come near to one door, and nearer than four that do not speak.
func TestDoors(t *testing.T) {
	const seed = 5
	for _, s := range Scenarios(Fitted, seed, 0.2) {
		if s.Name != "long and short" && s.Name != "metrics 5 s old" && s.Name != "shared prefixes" {
			continue
		}
		one := Run(&s, newLedgerPolicy(ledger.LeastKV), seed)
		four := Run(&s, newDoors(4, tellEvery), seed)
		apart := Run(&s, newDoors(4, 0), seed)
		t.Logf("%s: mean %.3f s by one door, %.3f s by four, %.3f s by four that do not speak", s.Name, one.Mean, four.Mean, apart.Mean)
		if four.Mean-one.Mean > 0.2*max(one.Mean, apart.Mean-one.Mean) || four.Mean > apart.Mean || four.Goodput < one.Goodput-0.015 || four.Goodput < apart.Goodput {
			t.Errorf("seed %d, %s: four doors that speak are not near enough to one: %+v, %+v, four that do not %+v", seed, s.Name, one, four, apart)
		}
	}
}
