package fitted

import (
	"testing"

	"roundhouse/balancer/sim"
	"roundhouse/test/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// A worker that looks like vLLM is met and measured over HTTP: its model, its KV, and a
// time for every kind of work that the points have. How near the times come is a matter
// of the machine, and shown by --fit itself.
func TestFit(t *testing.T) {
	w := sim.New(sim.Options{Speed: &sim.Speed{Base: 0.002, PerPrefill: 20e-6, PerDecode: 1e-4, Budget: 512, Capacity: 32_000}, Words: 4000})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	o := Options{Budget: 512, Seats: 32, Short: true, Seed: 1}
	m, err := New(t.Context(), w.URL+"/", o)
	if err != nil {
		t.Fatal(err)
	}
	speed, points, mixed, err := m.Fit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if speed.Capacity != 32_000 || speed.Seats != 32 || speed.Budget != 512 || !speed.InOrder || speed.Longest != 8192 || speed.Base <= 0 {
		t.Errorf("%+v", speed)
	}
	if len(points) != 8 || points[0].Measured <= 0 || points[0].Fitted <= 0 {
		t.Errorf("%+v", points)
	}
	if mixed.Real.TTFT.P50 <= 0 || mixed.Simulated.E2EL.P95 <= mixed.Simulated.TTFT.P50 {
		t.Errorf("%+v", mixed)
	}
	if _, err := New(t.Context(), "http://127.0.0.1:1", o); err == nil {
		t.Error("nobody was met")
	}
}
