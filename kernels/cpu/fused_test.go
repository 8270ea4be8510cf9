package cpu

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"roundhouse/kernels/num"
)

// fma rounds once, also where a sum in float64 comes to lie between two numbers
// and among the denormals.
func TestFMA(t *testing.T) {
	exact := func(x, y, z float32) float32 {
		of := func(v float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(v)) }
		sum := new(big.Float).SetPrec(1000).Mul(of(x), of(y))
		r, _ := sum.Add(sum, of(z)).Float32()
		return r
	}
	f := func(x, y, z float32) {
		t.Helper()
		if got, want := fma(x, y, z), exact(x, y, z); got != want {
			t.Fatalf("%g · %g + %g = %g (%08x); want %g (%08x)", x, y, z, got, math.Float32bits(got), want, math.Float32bits(want))
		}
	}
	half := float32(1 + 1.0/(1<<12))
	f(half, half, 1<<24) // 2^24 + 1 and a little
	f(-half, half, 1<<24+2)
	f(half, half, 1<<25)
	f(1+1.0/(1<<23), 1.0/(1<<24), 1) // beyond the middle by less than float64 has
	f(1, 1.0/(1<<24), 1)
	f(1e-30, 1e-10, 1e-40)
	f(1e-30, -1e-15, 1e-45)
	f(0, 1, 0)
	rng := rand.New(rand.NewPCG(7, 8))
	any := func(spread int) float32 {
		return float32(math.Ldexp(float64(1<<23+rng.IntN(1<<23)), rng.IntN(spread)-spread/2-23) * float64(1-2*rng.IntN(2)))
	}
	for range 200000 {
		x, y := any(20), any(20)
		f(x, y, any(20))
		// A sum whose float64 has a middle of two float32 in its last bits.
		p := float64(x) * float64(y)
		z := float32(math.Ldexp(math.Round(math.Ldexp(p, -math.Ilogb(p)-3)*8+1), math.Ilogb(p)+24))
		f(x, y, z)
		f(x, float32(math.Ldexp(1, -70)), any(20)*1e-38)
	}
}

// Every instruction set and shape gives the bits of the portable kernels.
func TestFused(t *testing.T) {
	const most, length = 11, 40
	rng := rand.New(rand.NewPCG(9, 10))
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return x
	}
	a, sums, wide := random(most*length), random(most*40), random(length*40)
	narrow := make([]byte, 2*len(wide))
	for i, v := range wide {
		binary.LittleEndian.PutUint16(narrow[2*i:], num.BF16(v))
	}
	b := [fusedKinds]unsafe.Pointer{fusedF32: unsafe.Pointer(&wide[0]), fusedBF16: unsafe.Pointer(&narrow[0])}
	plain := portable()
	for _, l := range isas() {
		for kind, size := range [fusedKinds]uintptr{fusedF32: 4, fusedBF16: 2} {
			for rows := 1; rows <= most; rows++ {
				for _, tiles := range []int{1, 2} {
					for _, n := range []int{1, 2, 16, length} {
						run := func(l *isa) []float32 {
							y := slices.Clone(sums)
							l.fuse(kind, &fused{y: unsafe.Pointer(&y[0]), ys: 160, a: unsafe.Pointer(&a[0]), as: 4 * length,
								b: b[kind], second: 20 * size, bs: 40 * size, n: uintptr(n)}, rows, tiles)
							return y
						}
						if !slices.Equal(run(l), run(plain)) {
							t.Fatalf("%s: kind %d, %d rows, %d tiles of %d rows: not the portable bits", l.name, kind, rows, tiles, n)
						}
					}
				}
			}
		}
	}
}
