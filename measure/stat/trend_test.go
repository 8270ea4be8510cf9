package stat

import (
	"math"
	"testing"
)

// A trend is found through outliers, and none in what only goes up and down.
func TestTrend(t *testing.T) {
	var x, up, level []float64
	for i := range 40 {
		x = append(x, float64(i))
		up = append(up, 2*float64(i)+3*math.Sin(float64(i)))
		level = append(level, math.Sin(float64(i)))
	}
	up[7], up[20] = 900, -900
	if s := TheilSen(x, up); math.Abs(s-2) > 0.1 {
		t.Errorf("slope %g; want 2", s)
	}
	if z, p := MannKendall(up); z < 0 || p > 1e-6 {
		t.Errorf("a rise has z %g, p %g", z, p)
	}
	if _, p := MannKendall(level); p < 0.05 {
		t.Errorf("no trend has p %g", p)
	}
	if _, p := MannKendall(make([]float64, 20)); p != 1 {
		t.Errorf("all alike has p %g", p)
	}
}

// The table of the tea tasting, and one that says nothing.
func TestFisher(t *testing.T) {
	if p := Fisher(3, 1, 1, 3); math.Abs(p-17.0/70) > 1e-9 {
		t.Errorf("p %g; want 17/70", p)
	}
	if p := Fisher(0, 10, 0, 10); p != 1 {
		t.Errorf("without failures p is %g", p)
	}
}

// Orders that are alike, opposite, and neither.
func TestKendall(t *testing.T) {
	f := func(want float64, y ...float64) {
		t.Helper()
		if got := Kendall([]float64{1, 2, 3, 4}, y); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %g; want %g", y, got, want)
		}
	}
	f(1, 10, 20, 30, 40)
	f(-1, 4, 3, 2, 1)
	f(2.0/3, 1, 2, 4, 3)
	f(0, 5, 5, 5, 5)
	if Kendall(nil, nil) != 0 {
		t.Error("of nothing there is no order")
	}
}

// Two settings that are alike within the band are in no order.
func TestKendallApart(t *testing.T) {
	x := []float64{1, 1.1, 2, 4}
	for want, y := range map[float64][]float64{1: {2, 1, 3, 4}, 0.6: {1, 2, 4, 3}} {
		if got := KendallApart(x, y, 0.2); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %g; want %g", y, got, want)
		}
	}
	if KendallApart(x, x, 10) != 0 {
		t.Error("all alike: there is no order")
	}
}
