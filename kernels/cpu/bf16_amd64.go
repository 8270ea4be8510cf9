//go:build !purego

package cpu

import (
	"math"
	"math/rand/v2"
	"unsafe"

	"roundhouse/kernels/num"
)

// isaBF16 is AVX-512 with VDPBF16PS for bf16 linears of several rows.
func isaBF16() *isa {
	l := isaAVX512()
	l.name = "avx512_bf16"
	l.matrix[kindBF16] = append(matrixDot(), l.matrix[kindBF16]...)
	l.halves = halvesBy(pairsDot)
	l.pairsFP8 = pairsOfFP8
	return l
}

// halvesBy is isa.halves by assembly.
func halvesBy(pack func(y *uint16, x *float32, n int)) func(y []uint16, x []float32) {
	return func(y []uint16, x []float32) {
		if len(x) > 0 {
			_ = y[len(x)-1]
			pack(&y[0], &x[0], len(x))
		}
	}
}

// sameDots reports whether this machine's VDPBF16PS rounds after each product, the
// high one first, as the manual has it and the order of sums needs it.
func sameDots() bool {
	const blocks = 4
	r := rand.New(rand.NewPCG(5, 12))
	any := func() float32 {
		return num.Operand(float32(r.NormFloat64() * math.Exp2(float64(r.IntN(24)-12))))
	}
	var w [blocks * 512]uint16
	var a [2][32 * blocks]float32
	var halves [2][32 * blocks]uint16
	var got, want [2]lanes
	for i := range w {
		w[i] = num.BF16(any())
	}
	for i := range a {
		for k := range a[i] {
			a[i][k] = any()
		}
		pairsDot(&halves[i][0], &a[i][0], 32*blocks)
	}
	t := tile{w: unsafe.Pointer(&w), blocks: blocks, aux: unsafe.Pointer(&halves), aStride: 64 * blocks, out: unsafe.Pointer(&got), outStride: 64}
	multiplyBF16_2x1_Dot(&t)
	for i := range a {
		t.a, t.out = unsafe.Pointer(&a[i]), unsafe.Pointer(&want[i])
		multiplyBF16(&t)
	}
	return got == want
}
