package balancer_test

import (
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/sim"
)

// TestSlowPromptIsNotHung has an engine, whose counters stand still as vLLM's do
// meanwhile, compute a prompt for many times as long as a worker may be silent.
func TestSlowPromptIsNotHung(t *testing.T) {
	hasten(t, 20*time.Millisecond, 100*time.Millisecond)
	o := sim.Options{Prefill: 3500 * time.Millisecond, Words: 5} // three looks at the least
	a, b := sim.New(o), sim.New(o)
	r := newRig(t, []*sim.Worker{a, b}, nil)
	resp, got := r.post("/v1/chat/completions", okBody)
	if resp.StatusCode != 200 || !strings.Contains(got, words(0, 5)) {
		t.Errorf("got %d %s", resp.StatusCode, got)
	}
	if n := a.Served.Load() + b.Served.Load(); n != 1 {
		t.Errorf("the request was sent %d times", n)
	}
	if strings.Contains(r.metrics(), "roundhouse_ejections_total{") {
		t.Error("a worker was taken out")
	}
}
