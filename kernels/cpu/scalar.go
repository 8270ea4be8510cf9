package cpu

import (
	"math"

	"roundhouse/kernels"
)

// The scalar functions are written out in float32 steps whose rounding is the
// same on every machine and in every instruction set; the package math has assembly of
// its own on some.

// Constants of exp: it is 2^n · p(r) with r = x - n·ln 2 in two parts.
const (
	expMost  = 88.3762626647949
	expLeast = -87.0
	log2e    = 1.44269504088896341
	ln2High  = 0.693359375
	ln2Low   = -2.12194440e-4
	expC0    = 1.9875691500e-4
	expC1    = 1.3981999507e-3
	expC2    = 8.3334519073e-3
	expC3    = 4.1665795894e-2
	expC4    = 1.6666665459e-1
	expC5    = 5.0000001201e-1
	magic    = 12582912 // 1.5 · 2^23: adding it rounds to an integer
)

// exp is e^x within 2 units in the last place, 0 below expLeast and +Inf above
// expMost.
func exp(x float32) float32 {
	if !(x >= expLeast) {
		if x != x {
			return x
		}
		return 0
	}
	if x > expMost {
		return float32(math.Inf(1))
	}
	n := float32(float32(x*log2e)+magic) - magic
	r := x - float32(n*ln2High)
	r -= float32(n * ln2Low)
	p := float32(expC0)
	p = float32(p*r) + expC1
	p = float32(p*r) + expC2
	p = float32(p*r) + expC3
	p = float32(p*r) + expC4
	p = float32(p*r) + expC5
	p = float32(p*float32(r*r)) + r
	p++
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}

func sigmoid(x float32) float32 { return 1 / (1 + exp(-x)) }

func silu(x float32) float32 {
	if x < expLeast {
		return 0 // and not -Inf · 0
	}
	return x / (1 + exp(-x))
}

// tanh is by exp where that is exact enough, and by its series near zero.
func tanh(x float32) float32 {
	switch a := float32(math.Abs(float64(x))); {
	case a < 0.25:
		s := float32(x * x)
		p := float32(s*(62.0/2835)) - 17.0/315
		p = float32(p*s) + 2.0/15
		p = float32(p*s) - 1.0/3
		return x + float32(float32(p*s)*x)
	case a > 10:
		return float32(math.Copysign(1, float64(x)))
	}
	return 1 - 2/(1+exp(2*x))
}

// Constants of gelu: erfc(z) is within 1.5e-7 of p(t)·e^(-z²) with
// t = 1/(1 + erfScale·z) (Abramowitz and Stegun, 7.1.26).
const (
	rootHalf = 0.70710678
	erfScale = 0.3275911
	erfC0    = 1.061405429
	erfC1    = 1.453152027
	erfC2    = 1.421413741
	erfC3    = 0.284496736
	erfC4    = 0.254829592
)

// gelu is x·Φ(x), Φ by erfc of the magnitude, so that it keeps its digits where
// it goes to zero.
func gelu(x float32) float32 {
	z := float32(float32(math.Abs(float64(x))) * rootHalf)
	t := 1 / (float32(z*erfScale) + 1)
	p := float32(t*erfC0) - erfC1
	p = float32(p*t) + erfC2
	p = float32(p*t) - erfC3
	p = float32(p*t) + erfC4
	p = float32(p * t)
	h := float32(float32(p*exp(-float32(z*z))) * 0.5)
	if x > 0 {
		h = 1 - h
	}
	return x * h
}

func geluTanh(x float32) float32 {
	inner := float32(0.7978845608) * (x + float32(float32(0.044715*x)*float32(x*x)))
	return 0.5 * x * (1 + tanh(inner))
}

// activation is the function of one kind.
func activation(kind kernels.Activation, x float32) float32 {
	switch kind {
	case kernels.SiLU:
		return silu(x)
	case kernels.GELU:
		return gelu(x)
	case kernels.GELUTanh:
		return geluTanh(x)
	case kernels.ReLU:
		return max(x, 0)
	case kernels.Tanh:
		return tanh(x)
	case kernels.QuickGELU:
		return x * sigmoid(1.702*x)
	}
	return sigmoid(x)
}

// gated is activation(gate) · up, or gpt-oss's form of it.
func gated(kind kernels.Activation, gate, up, limit float32) float32 {
	if limit > 0 {
		gate = min(gate, limit)
		up = min(max(up, -limit), limit)
	}
	if kind == kernels.SwiGLUOAI {
		return float32(gate*sigmoid(1.702*gate)) * (up + 1)
	}
	return activation(kind, gate) * up
}
