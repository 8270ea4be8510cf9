package history

import "math"

// code is one figure in 16 bits: its logarithm, to a thousandth of an octave, which is
// finer than any chart shows.
type code uint16

const (
	unknown code = 0 // nothing was known
	zero    code = 1
	least   code = 2

	perOctave = 1000
	lowest    = -14 // octaves; below 2^lowest all is zero
)

// encode turns a figure into its code. NaN is unknown; figures here are never negative.
func encode(v float64) code {
	switch {
	case math.IsNaN(v):
		return unknown
	case v <= math.Exp2(lowest):
		return zero
	}
	n := math.Round((math.Log2(v) - lowest) * perOctave)
	return least + code(min(n, math.MaxUint16-float64(least)))
}

func (c code) decode() float64 {
	switch c {
	case unknown:
		return math.NaN()
	case zero:
		return 0
	}
	return rounded(math.Exp2(float64(c-least)/perOctave + lowest))
}

// rounded keeps as many digits as the code bears: three, and no fraction of what is
// counted.
func rounded(v float64) float64 {
	scale := math.Pow(10, 2-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}
