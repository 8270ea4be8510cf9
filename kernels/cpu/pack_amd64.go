//go:build !purego

package cpu

import (
	"math"
	"unsafe"

	"roundhouse/kernels/num"
)

//go:noescape
func codesAVX512(q *int8, x *float32, n int, scale float64)

//go:noescape
func lanesOfAVX512(y *[16]uint32, x *uint32, stride, n int, flip uint32)

//go:noescape
func pairsBF16_AVX512(y, x *byte, stride, n int)

//go:noescape
func pairsFP8_AVX512(y, x *byte, n int)

// pairsOfFP8 is isa.pairsFP8.
func pairsOfFP8(y, x []byte) {
	_ = x[len(y)/2-1]
	pairsFP8_AVX512(&y[0], &x[0], len(y)/64)
}

// codesRowAVX512 is num.Int8Row.
func codesRowAVX512(q []int8, x []float32) (scale float32) {
	if len(x) == 0 || len(x)%16 != 0 {
		return num.Int8Row(q, x)
	}
	var bits [16]uint32
	magnitudeAVX512(&bits, &x[0], len(x))
	var most uint32 // magnitudes order as their bits do
	for _, b := range bits {
		most = max(most, b)
	}
	if most == 0 || most >= 0x7f800000 {
		return num.Int8Row(q, x)
	}
	scale = math.Float32frombits(most) / 127
	if scale == 0 {
		return num.Int8Row(q, x)
	}
	_ = q[len(x)-1]
	codesAVX512(&q[0], &x[0], len(x), float64(scale))
	return scale
}

// lanesOfRowsAVX512 is lanesOf.
func lanesOfRowsAVX512(y [][16]uint32, x []uint32, stride int, flip uint32) {
	n := len(y) &^ 15
	if n > 0 {
		_ = x[15*stride+n-1]
		lanesOfAVX512(&y[0], unsafe.SliceData(x), 4*stride, n, flip)
	}
	if n < len(y) {
		lanesOf(y[n:], x[n:], stride, flip)
	}
}

// pairsOfBF16AVX512 is pairsOfBF16.
func pairsOfBF16AVX512(y, x []byte, in, rows, first int) {
	n := (in - first) / 32
	if rows < 16 || n == 0 || first > 0 {
		pairsOfBF16(y, x, in, rows, first)
		return
	}
	_, _ = x[32*in-1], y[1024*n-1]
	pairsBF16_AVX512(&y[0], &x[0], 2*in, n)
	pairsOfBF16(y, x, in, rows, 32*n)
}
