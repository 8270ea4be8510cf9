package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s is %g; want %g", what, got, want)
	}
}

// The values are numpy's: percentile, mean and std of these numbers.
func TestAsNumpy(t *testing.T) {
	x := []float64{3, 1, 4, 1, 5, 9, 2, 6, 5, 3.5}
	s := Sorted(x)
	if !slices.IsSorted(s) || slices.IsSorted(x) {
		t.Error("Sorted gives a sorted copy and leaves its argument")
	}
	near(t, "p50", Percentile(s, 50), 3.75, 1e-12)
	near(t, "p90", Percentile(s, 90), 6.3, 1e-12)
	near(t, "p99", Percentile(s, 99), 8.73, 1e-12)
	near(t, "p100", Percentile(s, 100), 9, 0)
	near(t, "p0", Percentile(s, 0), 1, 0)
	near(t, "mean", Mean(x), 3.95, 1e-12)
	near(t, "std", Deviation(x), 2.328626, 1e-6)
	near(t, "p50 of none", Percentile(nil, 50), 0, 0)
	near(t, "mean of none", Mean(nil), 0, 0)
}

// A share of 99 % is shown by no miss of 300 and by 4 of 1000, and not by one of 300.
func TestWilson(t *testing.T) {
	if WilsonLower(300, 300) < 0.99 || WilsonLower(996, 1000) < 0.99 {
		t.Error("0 misses of 300 and 4 of 1000 should show 99 %")
	}
	if WilsonLower(298, 300) >= 0.99 || WilsonLower(99, 100) >= 0.99 {
		t.Error("2 misses of 300 and 1 of 100 should not show 99 %")
	}
	near(t, "bound of no trials", WilsonLower(0, 0), 0, 0)
}

// Intervals hold the truth about as often as they say.
func TestCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const trials = 2000
	p95, mean := 0, 0
	for range trials {
		x := make([]float64, 400)
		for i := range x {
			x[i] = rng.ExpFloat64()
		}
		if in, ok := PercentileInterval(Sorted(x), 95); ok && in.Low <= -math.Log(0.05) && -math.Log(0.05) <= in.High {
			p95++
		}
		few := []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		if in, ok := MeanInterval(few); ok && in.Low <= 0 && 0 <= in.High {
			mean++
		}
	}
	near(t, "coverage of p95", float64(p95)/trials, 0.95, 0.02)
	near(t, "coverage of a mean of three", float64(mean)/trials, 0.95, 0.02)
	if _, ok := PercentileInterval(make([]float64, 50), 99); ok {
		t.Error("50 values bear no p99")
	}
	if _, ok := MeanInterval([]float64{1}); ok {
		t.Error("one value has no interval")
	}
}

func TestSlope(t *testing.T) {
	slope, deviation, ok := Slope([]float64{0, 1, 2, 3}, []float64{1, 3, 5, 7})
	if !ok {
		t.Fatal("four points have a slope")
	}
	near(t, "slope", slope, 2, 1e-12)
	near(t, "its error", deviation, 0, 1e-12)
	if _, _, ok := Slope([]float64{1, 1, 1}, []float64{1, 2, 3}); ok {
		t.Error("one x has no slope")
	}
}
