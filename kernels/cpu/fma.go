//go:build !arm64

package cpu

import "math"

// fma is x·y + z, rounded once. The product is exact in float64, and so is the
// sum's rounding to float32 unless it comes to lie in the middle of two, or among
// the denormals.
func fma(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	s := p + float64(z)
	if b := math.Float64bits(s); b&0x1fffffff == 0x10000000 || b&0x7ff0000000000000 < 897<<52 {
		return roundOnce(p, float64(z), s)
	}
	return float32(s)
}

// roundOnce rounds p + z, which is s or beside it, to float32.
func roundOnce(p, z, s float64) float32 {
	there := s - p
	missing := (p - (s - there)) + (z - there)
	if missing != 0 && math.Float64bits(s)&1 == 0 {
		// To the side of what is missing: an odd last bit says that there is more.
		s = math.Nextafter(s, math.Inf(int(math.Copysign(1, missing))))
	}
	return float32(s)
}
