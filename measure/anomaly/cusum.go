package anomaly

import (
	"math"

	"roundhouse/measure/stat"
)

// cusum sums up what lies above a slack, in units of the usual
// deviation. Two pairs of slack and bound look for large steps and for small ones. The
// bounds are a little above those that give one false alarm in a million minutes (6.1
// and 12) of even noise: what is measured has longer tails.
type cusum [len(cusums)]float64

var cusums = [...]struct{ slack, bound float64 }{{1, 8}, {0.5, 15}}

// most is the most that one minute counts: a single odd one is no change of the mean.
const most = 4

// add takes one deviation.
func (c *cusum) add(z float64) {
	z = math.Max(-most, math.Min(most, z))
	for i, k := range cusums {
		c[i] = math.Min(2*k.bound, math.Max(0, c[i]+z-k.slack))
	}
}

// beyond reports whether a part of a bound is passed.
func (c *cusum) beyond(part float64) bool {
	for i, k := range cusums {
		if c[i] >= part*k.bound {
			return true
		}
	}
	return false
}

// usual is what a series mostly is: its median, and the deviation that its MAD tells,
// widened by how much a value resembles the one before.
func usual(x []float64, least float64) (centre, deviation float64) {
	s := stat.Sorted(x)
	centre = stat.Percentile(s, 50)
	off := make([]float64, len(x))
	for i, v := range x {
		off[i] = math.Abs(v - centre)
	}
	deviation = 1.4826 * math.Max(least, stat.Percentile(stat.Sorted(off), 50))
	if phi := likeness(x, centre, 3*deviation); phi > 0.3 {
		phi = math.Min(phi, 0.8)
		deviation *= math.Sqrt((1 + phi) / (1 - phi))
	}
	return centre, deviation
}

// likeness is the lag-1 correlation of a series about its centre, values cut at a bound.
func likeness(x []float64, centre, bound float64) float64 {
	cut := func(v float64) float64 { return math.Max(-bound, math.Min(bound, v-centre)) }
	sum, all := 0.0, 0.0
	for i := range x {
		a := cut(x[i])
		all += a * a
		if i > 0 {
			sum += a * cut(x[i-1])
		}
	}
	if all == 0 {
		return 0
	}
	return sum / all
}
