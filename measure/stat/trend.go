package stat

import (
	"math"
	"slices"
)

// TheilSen returns the median slope of all pairs of points, which a fifth of odd ones
// does not move; 0 of fewer than two.
func TheilSen(x, y []float64) float64 {
	var slopes []float64
	for i := range x {
		for k := range i {
			if x[i] != x[k] {
				slopes = append(slopes, (y[i]-y[k])/(x[i]-x[k]))
			}
		}
	}
	slices.Sort(slopes)
	return Percentile(slopes, 50)
}

// MannKendall tests whether y rises or falls with its order, by the signs of all
// pairs: z is above 0 if it rises, and p the chance of such a z without a trend.
// Equal values are counted as ties.
func MannKendall(y []float64) (z, p float64) {
	n := float64(len(y))
	s, ties := 0.0, map[float64]float64{}
	for i := range y {
		ties[y[i]]++
		for k := range i {
			switch {
			case y[i] > y[k]:
				s++
			case y[i] < y[k]:
				s--
			}
		}
	}
	variance := n * (n - 1) * (2*n + 5)
	for _, t := range ties {
		variance -= t * (t - 1) * (2*t + 5)
	}
	if variance <= 0 {
		return 0, 1
	}
	switch { // corrected for continuity
	case s > 0:
		s--
	case s < 0:
		s++
	}
	z = s / math.Sqrt(variance/18)
	return z, math.Erfc(math.Abs(z) / math.Sqrt2)
}

// Fisher returns the chance of a table like this one, or a more unequal one, if both
// rows had the same share of failures (Fisher's exact test, one-sided: more failures
// in the first row).
func Fisher(bad, good, othersBad, othersGood int) float64 {
	row, column, all := bad+good, bad+othersBad, bad+good+othersBad+othersGood
	p := 0.0
	for k := bad; k <= min(row, column); k++ {
		if column-k <= all-row {
			p += math.Exp(choose(column, k) + choose(all-column, row-k) - choose(all, row))
		}
	}
	return math.Min(1, p)
}

// choose is the logarithm of the number of ways to take k of n.
func choose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// KendallApart is Kendall of the pairs whose x differ by more than a share of the smaller;
// 0 if there are none.
func KendallApart(x, y []float64, share float64) float64 {
	sum, pairs := 0.0, 0.0
	for i := range x {
		for k := range i {
			if low, high := min(x[i], x[k]), max(x[i], x[k]); high > low*(1+share) {
				sum, pairs = sum+Kendall([]float64{x[i], x[k]}, []float64{y[i], y[k]}), pairs+1
			}
		}
	}
	if pairs == 0 {
		return 0
	}
	return sum / pairs
}

// Kendall returns how alike two orders are: the share of pairs in the same order less that
// of pairs in opposite ones. Pairs that are equal in either count as neither.
func Kendall(x, y []float64) float64 {
	sum, pairs := 0.0, 0.0
	for i := range x {
		for k := range i {
			pairs++
			switch d := (x[i] - x[k]) * (y[i] - y[k]); {
			case d > 0:
				sum++
			case d < 0:
				sum--
			}
		}
	}
	if pairs == 0 {
		return 0
	}
	return sum / pairs
}
