package cpu

import (
	"math"

	"roundhouse/kernels"
)

// layerNorm is out = (in - mean) / sqrt(variance + eps) · factors + biases, in
// three passes of float32. The mean that the first one finds is rounded to the
// numbers' own size, which is much where they lie far from zero, so the second
// sums what is left of it as well: both the mean and the variance are as
// exact as the deviations are.
func (l *isa) layerNorm(op *kernels.Norm, out, in, factors, biases []float32) {
	n := float64(len(in))
	mean := float32(float64(l.sum(in)) / n)
	sum, square := l.deviations(in, mean)
	rest := float64(sum) / n
	variance := max(float64(square)/n-float64(rest*rest), 0)
	l.centre(out, in, factors, biases, mean, float32(rest), float32(1/math.Sqrt(variance+float64(op.Eps))))
}

func sum(x []float32) float32 {
	var total lanes
	for len(x) >= 16 {
		for j, v := range (*lanes)(x) {
			total[j] += v
		}
		x = x[16:]
	}
	for j, v := range x {
		total[j] += v
	}
	return tree(&total)
}

func deviations(x []float32, mean float32) (sum, square float32) {
	var sums, squares lanes
	for len(x) >= 16 {
		for j, v := range (*lanes)(x) {
			d := v - mean
			sums[j] += d
			squares[j] += float32(d * d)
		}
		x = x[16:]
	}
	for j, v := range x {
		d := v - mean
		sums[j] += d
		squares[j] += float32(d * d)
	}
	return tree(&sums), tree(&squares)
}

func centre(y, x, w, b []float32, mean, rest, scale float32) {
	for i := range y {
		y[i] = float32((x[i]-mean-rest)*scale*w[i]) + b[i]
	}
}
