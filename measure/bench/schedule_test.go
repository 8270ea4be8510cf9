package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"roundhouse/measure/stat"
)

func gaps(due []time.Duration) []float64 {
	var g []float64
	last := time.Duration(0)
	for _, d := range due {
		g = append(g, (d - last).Seconds())
		last = d
	}
	return g
}

// The schedule has the rate that was asked for, whatever the seed, and gaps of the
// spread that the burstiness says: a Gamma distribution's is 1/√shape.
func TestSchedule(t *testing.T) {
	f := func(burstiness float64) {
		t.Helper()
		due := Schedule(20000, Load{Rate: 50, Burstiness: burstiness}, rand.New(rand.NewPCG(3, 4)))
		if !slices.IsSorted(due) {
			t.Errorf("burstiness %g: due times go back", burstiness)
		}
		if last := due[len(due)-1].Seconds(); math.Abs(last-400) > 1e-3 {
			t.Errorf("burstiness %g: the last of 20000 at 50/s is due after %g s; want 400", burstiness, last)
		}
		g := gaps(due)
		got, want := stat.Deviation(g)/stat.Mean(g), 1/math.Sqrt(burstiness)
		if math.IsInf(burstiness, 1) {
			want = 0
		}
		if math.Abs(got-want) > 0.05*max(want, 0.02) {
			t.Errorf("burstiness %g: gaps spread by %.3f of their mean; want %.3f", burstiness, got, want)
		}
	}
	f(1)
	f(0.25)
	f(4)
	f(math.Inf(1))

	for _, d := range Schedule(10, Load{Rate: math.Inf(1)}, rand.New(rand.NewPCG(1, 1))) {
		if d != 0 {
			t.Error("without a rate all requests are due at once")
		}
	}
}

// A ramp begins and ends at its rates.
func TestRamp(t *testing.T) {
	for _, how := range []string{"linear", "exponential"} {
		g := gaps(Schedule(3000, Load{RampUp: how, Start: 2, End: 20, Burstiness: math.Inf(1)}, rand.New(rand.NewPCG(1, 1))))
		if math.Abs(g[0]-0.5) > 1e-6 || math.Abs(g[len(g)-1]-0.05) > 1e-6 {
			t.Errorf("%s: gaps go from %g to %g s; want 0.5 to 0.05", how, g[0], g[len(g)-1])
		}
	}
	if mid := (Load{RampUp: "exponential", Start: 2, End: 32}).rate(50, 101); math.Abs(mid-8) > 1e-9 {
		t.Errorf("half-way from 2 to 32 by powers is %g; want 8", mid)
	}
}
