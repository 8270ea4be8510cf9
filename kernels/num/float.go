package num

import "math"

// BF16 rounds x to bfloat16 and returns its 16 bits. NaN stays NaN.
func BF16(x float32) uint16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// FromBF16 widens a bfloat16.
func FromBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// RoundBF16 rounds x to the nearest bfloat16.
func RoundBF16(x float32) float32 { return FromBF16(BF16(x)) }

// Tiny is the least magnitude that a bf16 operand of a linear keeps; what is
// smaller counts as zero. Products of two operands are then multiples of
// 2^-114 and so is every sum of them: no denormal number ever arises, and
// units that flush denormals (AMX) agree with those that do not.
const Tiny = 1.0 / (1 << 50)

// Operand rounds x to the bf16 operand of a linear: Tiny and below is zero.
func Operand(x float32) float32 {
	x = RoundBF16(x)
	if x < Tiny && x > -Tiny {
		return 0
	}
	return x
}

// F16 rounds x to IEEE half precision and returns its bits.
func F16(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00
	case b >= 0x477ff000: // rounds to 65536 or more
		return sign | 0x7c00
	case b < 0x38800000: // denormal: multiples of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(b))*(1<<24)))
	}
	b += 0xfff + b>>13&1
	return sign | uint16(b>>13-(127-15)<<10)
}

// FromF16 widens a half.
func FromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, man := uint32(h>>10&31), uint32(h&0x3ff)
	switch exp {
	case 0:
		x := float32(man) / (1 << 24)
		if sign != 0 {
			x = -x
		}
		if man == 0 {
			return math.Float32frombits(sign)
		}
		return x
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | man<<13)
}

// E4M3 rounds x to fp8 e4m3fn, which has no infinity: what is beyond 448 is 448.
func E4M3(x float32) uint8 {
	var sign uint8
	if math.Signbit(float64(x)) {
		sign = 0x80
		x = -x
	}
	switch {
	case x != x:
		return 0x7f
	case x >= 448:
		return sign | 0x7e
	case x < 1.0/64: // denormal: multiples of 2^-9
		return sign | uint8(math.RoundToEven(float64(x)*512))
	}
	b := math.Float32bits(x)
	b += 0x7ffff + b>>20&1
	return sign | uint8(b>>20-(127-7)<<3)
}

// FromE4M3 widens an fp8 e4m3fn.
func FromE4M3(b uint8) float32 { return e4m3[b] }

// FromE5M2 widens an fp8 e5m2, which is the upper half of a half.
func FromE5M2(b uint8) float32 { return FromF16(uint16(b) << 8) }

// FromE2M1 widens the four bits of an MXFP4 element.
func FromE2M1(b uint8) float32 { return e2m1[b&15] }

// FromE8M0 is the scale 2^(b-127) of an MXFP4 group; 255 is NaN.
func FromE8M0(b uint8) float32 {
	if b == 255 {
		return float32(math.NaN())
	}
	return float32(math.Ldexp(1, int(b)-127))
}

var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

var e4m3 = func() (t [256]float32) {
	for i := range t {
		exp, man := i>>3&15, i&7
		x := math.Ldexp(float64(8+man), exp-7-3)
		switch {
		case exp == 15 && man == 7:
			x = math.NaN()
		case exp == 0:
			x = math.Ldexp(float64(man), -9)
		}
		if i&0x80 != 0 {
			x = -x
		}
		t[i] = float32(x)
	}
	return t
}()
