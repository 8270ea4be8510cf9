package cpu

import (
	"roundhouse/kernels/num"
)

// Pages in int8 keep a scale for each token and head beside its codes. Scores
// and chances are multiplied by it, so that codes are all that is widened.

// keyScales are the scales of a head's keys, one a token.
func (c *kv) keyScales(page []byte) []float32 {
	return floats(page[c.scales:][:4*c.stride])
}

// valueScales are those of its values.
func (c *kv) valueScales(page []byte) []float32 {
	return floats(page[c.scales+4*c.stride:][:4*c.spec.BlockTokens])
}

// scalesOfValues are those of the values, which may be a part of the keys.
func (c *kv) scalesOfValues(page []byte, keys bool) []float32 {
	if keys {
		return c.keyScales(page)
	}
	return c.valueScales(page)
}

// putInt8 stores numbers as codes, step bytes apart, and returns their scale.
func putInt8(to []byte, step int, x []float32) float32 {
	const most = 1024
	var room [most]int8
	q := room[:]
	if len(x) > most {
		q = make([]int8, len(x))
	}
	scale, _ := num.QuantiseRow(q[:len(x)], x)
	for d, code := range q[:len(x)] {
		to[d*step] = byte(code)
	}
	return scale
}

// scaleAll multiplies scores or chances by the scales of their tokens.
func (l *isa) scaleAll(p, scales []float32) { l.normalise(p, p, scales, 1) }
