package num

import "math"

// Group is the number of columns that share one scale of an activation, and
// of a sym_int4 weight.
const Group = 128

// QuantiseRow rounds a group of activations to int8: scale = max|x| / 127 and
// q = x · (127 / max|x|), to nearest even. It returns the scale, and the sum of
// q, which corrects for unsigned weights. A group below 1e-30 counts as zero.
// Infinite and NaN inputs give a NaN scale, so that they are not lost.
func QuantiseRow(q []int8, x []float32) (scale float32, sum int32) {
	var bits uint32 // magnitudes order as their bits do, NaN above all
	for _, v := range x {
		bits = max(bits, math.Float32bits(v)&0x7fffffff)
	}
	most := math.Float32frombits(bits)
	switch {
	case most < 1e-30:
		clear(q)
		return 0, 0
	case bits >= 0x7f800000:
		clear(q)
		return float32(math.NaN()), 0
	}
	inverse := 127 / most
	for i, v := range x {
		// Adding and taking off 1.5 · 2^23 rounds to nearest even.
		r := int32(float32(float32(v*inverse)+12582912) - 12582912)
		q[i] = int8(r)
		sum += r
	}
	return most / 127, sum
}

// SymInt4 quantises one group of a weight row as Intel's sym_int4: codes are
// 0 to 15 and stand for (q-8)·scale; the scale is stored as fp16, while codes
// are chosen with the unrounded one.
func SymInt4(q []uint8, x []float32) (scale uint16) {
	var most uint32 // magnitudes order as their bits do
	var m float32
	for _, v := range x {
		if a := math.Float32bits(v) & 0x7fffffff; a > most {
			most, m = a, v
		}
	}
	d := m / -8
	var id float32
	if d != 0 {
		id = 1 / d
	}
	for i, v := range x {
		q[i] = uint8(min(max(int(float32(v*id)+8.5), 0), 15))
	}
	return F16(d)
}

// Int8Row quantises a weight row to int8 with one scale.
func Int8Row(q []int8, x []float32) (scale float32) {
	var most float32
	for _, v := range x {
		most = max(most, float32(math.Abs(float64(v))))
	}
	if most == 0 {
		clear(q)
		return 0
	}
	scale = most / 127
	for i, v := range x {
		q[i] = int8(math.RoundToEven(float64(v) / float64(scale)))
	}
	return scale
}

// FP8Row quantises a weight row to e4m3 with one scale.
func FP8Row(q []uint8, x []float32) (scale float32) {
	var most float32
	for _, v := range x {
		most = max(most, float32(math.Abs(float64(v))))
	}
	if most == 0 {
		clear(q)
		return 0
	}
	scale = most / 448
	for i, v := range x {
		q[i] = E4M3(v / scale)
	}
	return scale
}
