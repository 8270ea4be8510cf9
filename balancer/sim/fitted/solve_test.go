package fitted

import (
	"math"
	"testing"
)

// TestSolve finds the coefficients that made the points, and none below zero.
func TestSolve(t *testing.T) {
	f := func(name string, want []float64, xs ...float64) {
		t.Helper()
		var points []Point
		for _, x := range xs {
			p := Point{basis: []float64{1, x, x * x}}
			p.Measured = dot(p.basis, want)
			points = append(points, p)
		}
		for i, got := range solve(points) {
			if math.Abs(got-want[i]) > 1e-3*want[i]+1e-9 {
				t.Errorf("%s: coefficient %d is %g; want %g", name, i, got, want[i])
			}
		}
	}
	f("all three", []float64{0.3, 0.02, 0.005}, 1, 2, 4, 8, 16)
	f("a straight line", []float64{0.3, 0.02, 0}, 1, 2, 4, 8, 16)
	points := []Point{{Measured: 2, basis: []float64{1, 1}}, {Measured: 1, basis: []float64{1, 2}}}
	if got := solve(points); got[0] < 0 || got[1] < 0 {
		t.Errorf("coefficients are %v", got)
	}
}
