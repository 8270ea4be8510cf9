package cpu

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Every instruction set gives the bits of the portable one where functions bend: at the
// edges of their pieces, at infinities and beside them.
func TestRows(t *testing.T) {
	inf := float32(math.Inf(1))
	x := []float32{0, float32(math.Copysign(0, -1)), 1e-40, -1e-40, 1e-20, 0.3133, 0.31334, -0.31334, 0.25, -0.25, 1, -1, 2.9, 3, 4.5, -4.5, 9.9, 10, 10.1, -10, -10.1,
		43, 44, 45, -44, 87, 88, 89, -87, -88, -89, 1e10, -1e10, math.MaxFloat32, -math.MaxFloat32, inf, -inf, float32(math.NaN())}
	rng := rand.New(rand.NewPCG(3, 5))
	for range 3000 {
		x = append(x, float32(rng.NormFloat64()*math.Pow(10, 4*rng.Float64()-3)))
	}
	up := make([]float32, len(x))
	for i := range up {
		up[i] = float32(rng.NormFloat64())
	}
	codes, odd := make([]byte, 256), make([]byte, 37)
	for i := range codes {
		codes[i] = byte(i)
	}
	for i := range odd {
		odd[i] = byte(rng.Uint32())
	}
	plain := portable()
	for _, l := range isas() {
		f := func(name string, n int, run func(l *isa, y []float32)) {
			t.Helper()
			got, want := make([]float32, n), make([]float32, n)
			run(l, got)
			run(plain, want)
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
					t.Errorf("%s: %s of element %d: %v (%08x); want %v (%08x)", l.name, name, i, got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
				}
			}
		}
		f("gelu", len(x), func(l *isa, y []float32) { l.gelu(y, x) })
		f("geluMul", len(x), func(l *isa, y []float32) { l.geluMul(y, x, up) })
		f("siluMul", len(x), func(l *isa, y []float32) { l.siluMul(y, x, up) })
		for _, n := range []int{1, 15, 16, 47, 1000} {
			f("sum", 1, func(l *isa, y []float32) { y[0] = l.sum(up[:n]) })
			f("deviations", 2, func(l *isa, y []float32) { y[0], y[1] = l.deviations(up[:n], 0.3) })
			f("centre", n, func(l *isa, y []float32) { l.centre(y, x, up, x[3:], 0.3, 1e-3, 1.7) })
		}
		f("sum, not a number", 1, func(l *isa, y []float32) { y[0] = l.sum(x) })
		f("deviations, not a number", 2, func(l *isa, y []float32) { y[0], y[1] = l.deviations(x, 0.3) })
		f("widenFP8", len(codes), func(l *isa, y []float32) { l.widenFP8(y, codes) })
		f("widenFP8", len(odd), func(l *isa, y []float32) { l.widenFP8(y, odd) })
		f("widenBF16", len(codes)/2, func(l *isa, y []float32) { l.widenBF16(y, codes) })
		f("widenBF16", len(odd)/2, func(l *isa, y []float32) { l.widenBF16(y, odd) })
		f("widenInt8", len(codes), func(l *isa, y []float32) { l.widenInt8(y, codes) })
		f("widenInt8", len(odd), func(l *isa, y []float32) { l.widenInt8(y, odd) })
	}
}
