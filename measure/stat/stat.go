// Package stat is the arithmetic of measured samples: percentiles as numpy
// computes them, and how much a figure of so many samples can be trusted.
package stat

import (
	"math"
	"slices"
)

// Mean returns the mean of x, 0 of none.
func Mean(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// Deviation returns the standard deviation of x as a whole population, 0 of none.
func Deviation(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	mean, sum := Mean(x), 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(x)))
}

// Percentile returns the p-th percentile (0 to 100) of sorted values, with linear
// interpolation between neighbours; 0 of none.
func Percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := p / 100 * float64(len(sorted)-1)
	below := int(at)
	if below >= len(sorted)-1 {
		return sorted[len(sorted)-1]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}

// Sorted returns a sorted copy of x.
func Sorted(x []float64) []float64 {
	s := slices.Clone(x)
	slices.Sort(s)
	return s
}

// Interval is a range that holds the true figure with a stated confidence.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// PercentileInterval returns the 95 % interval of the p-th percentile of sorted
// values by order statistics: no assumption on the distribution. It reports false
// if there are too few values for both ends to lie among them.
func PercentileInterval(sorted []float64, p float64) (Interval, bool) {
	n, q := float64(len(sorted)), p/100
	half := 1.96 * math.Sqrt(n*q*(1-q))
	low, high := int(math.Floor(n*q-half)), int(math.Ceil(n*q+half))
	if low < 0 || high >= len(sorted) {
		return Interval{}, false
	}
	return Interval{sorted[low], sorted[high]}, true
}

// students are the 97.5 % points of Student's t for 1 to 30 degrees of freedom.
var students = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
	2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
	2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042}

// MeanInterval returns the 95 % interval of the mean of independent values, by
// Student's t; it reports false of fewer than two.
func MeanInterval(x []float64) (Interval, bool) {
	n := len(x)
	if n < 2 {
		return Interval{}, false
	}
	t := 1.96
	if n-2 < len(students) {
		t = students[n-2]
	}
	mean := Mean(x)
	half := t * Deviation(x) * math.Sqrt(float64(n)/float64(n-1)) / math.Sqrt(float64(n))
	return Interval{mean - half, mean + half}, true
}

// WilsonLower returns the one-sided 95 % lower bound of a share of which good of n
// trials were successes (Wilson's score interval); 0 of no trials.
func WilsonLower(good, n int) float64 {
	if n == 0 {
		return 0
	}
	const z = 1.6449
	p, m := float64(good)/float64(n), float64(n)
	centre := p + z*z/(2*m)
	spread := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return (centre - spread) / (1 + z*z/m)
}

// Slope returns the slope of y over x by least squares, and the standard error of
// the slope; it reports false of fewer than three points or of a single x.
func Slope(x, y []float64) (slope, deviation float64, ok bool) {
	n := len(x)
	if n < 3 {
		return 0, 0, false
	}
	mx, my := Mean(x), Mean(y)
	var xx, xy float64
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		xy += (x[i] - mx) * (y[i] - my)
	}
	if xx == 0 {
		return 0, 0, false
	}
	slope = xy / xx
	rest := 0.0
	for i := range x {
		e := y[i] - my - slope*(x[i]-mx)
		rest += e * e
	}
	return slope, math.Sqrt(rest / float64(n-2) / xx), true
}

// DifferenceInterval returns the 95 % interval of mean(y) − mean(x) for independent
// values of unlike spread (Welch); it reports false if either has fewer than two.
func DifferenceInterval(x, y []float64) (Interval, bool) {
	if len(x) < 2 || len(y) < 2 {
		return Interval{}, false
	}
	spread := func(v []float64) float64 { // the mean's variance
		n := float64(len(v))
		d := Deviation(v)
		return d * d / (n - 1)
	}
	vx, vy := spread(x), spread(y)
	d := Mean(y) - Mean(x)
	if vx+vy == 0 {
		return Interval{d, d}, true
	}
	freedom := (vx + vy) * (vx + vy) / (vx*vx/float64(len(x)-1) + vy*vy/float64(len(y)-1))
	t := 1.96
	if i := int(freedom) - 1; i < len(students) {
		t = students[max(0, i)]
	}
	half := t * math.Sqrt(vx+vy)
	return Interval{d - half, d + half}, true
}
