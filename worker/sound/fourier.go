package sound

import (
	"math"
	"math/cmplx"
	"sync"
)

// transform computes spectra of frames; its memory is used again.
type transform struct {
	in, out, spare [window]complex128
	squares        [bins]float64
}

// roots are e^(-2πik/window).
var roots = sync.OnceValue(func() *[window]complex128 {
	var r [window]complex128
	for k := range r {
		r[k] = cmplx.Exp(complex(0, -2*math.Pi*float64(k)/window))
	}
	return &r
})

// power is the squares of the magnitudes of a frame's spectrum.
func (f *transform) power(frame *[window]float64) *[bins]float64 {
	for i, v := range frame {
		f.in[i] = complex(v, 0)
	}
	r := roots()
	f.fourier(f.in[:], f.out[:], window, 1, r)
	for k := range f.squares {
		v := f.out[k]
		f.squares[k] = real(v)*real(v) + imag(v)*imag(v)
	}
	return &f.squares
}

// fourier is the transform of n numbers, stride apart in in: those of its parts by
// the least prime factor, put together.
func (f *transform) fourier(in, out []complex128, n, stride int, r *[window]complex128) {
	if n == 1 {
		out[0] = in[0]
		return
	}
	factor := 5
	if n%2 == 0 {
		factor = 2
	}
	m := n / factor
	for p := range factor {
		f.fourier(in[p*stride:], out[p*m:(p+1)*m], m, stride*factor, r)
	}
	var parts [5]complex128
	for k := range m {
		for p := range factor {
			parts[p] = out[p*m+k] * r[p*k*stride]
		}
		for q := range factor {
			sum := parts[0]
			for p := 1; p < factor; p++ {
				sum += parts[p] * r[p*q*m*stride%window]
			}
			out[q*m+k] = sum
		}
	}
}
