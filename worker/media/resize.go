package media

import "math"

// Filter weighs the pixels that a pixel of a resized picture is made of.
type Filter uint8

// The filters, by Pillow's numbers.
const (
	Lanczos  Filter = 1
	Bilinear Filter = 2
	Bicubic  Filter = 3
	Box      Filter = 4
)

// support is how far from its middle a filter has weights.
func (f Filter) support() float64 {
	return map[Filter]float64{Lanczos: 3, Bilinear: 1, Bicubic: 2, Box: 0.5}[f]
}

// weight is the filter at x.
func (f Filter) weight(x float64) float64 {
	switch f {
	case Box:
		if x > -0.5 && x <= 0.5 {
			return 1
		}
	case Bilinear:
		if x = math.Abs(x); x < 1 {
			return 1 - x
		}
	case Bicubic:
		const a = -0.5
		if x = math.Abs(x); x < 1 {
			return float64(float64(float64((a+2)*x)-(a+3))*x)*x + 1
		} else if x < 2 {
			return (float64((float64((x-5)*x)+8)*x) - 4) * a
		}
	case Lanczos:
		if x >= -3 && x < 3 {
			return sinc(x) * sinc(x/3)
		}
	}
	return 0
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	x *= math.Pi
	return math.Sin(x) / x
}

// precision is the bits of a weight behind its point.
const precision = 32 - 8 - 2

// tap is the pixels of one axis that a pixel is made of, from first on.
type tap struct {
	first   int
	weights []int32
}

// taps are those of n pixels made of m.
func (f Filter) taps(n, m int) []tap {
	scale := float64(n) / float64(m)
	wide := max(scale, 1)
	support := f.support() * wide
	list := make([]tap, m)
	for i := range list {
		centre := (float64(i) + 0.5) * scale
		first := max(int(centre-support+0.5), 0)
		end := min(int(centre+support+0.5), n)
		weights, sum := make([]float64, end-first), 0.0
		for k := range weights {
			weights[k] = f.weight((float64(k+first) - centre + 0.5) * (1 / wide))
			sum += weights[k]
		}
		list[i] = tap{first, make([]int32, len(weights))}
		for k, w := range weights {
			if sum != 0 {
				w /= sum
			}
			list[i].weights[k] = int32(math.Trunc(float64(w*(1<<precision)) + math.Copysign(0.5, w)))
		}
	}
	return list
}

// Resize is Pillow's resize of RGB pixels, to the bit: weights of 22 bits, and
// each pass rounded to bytes. Its version 13 takes the columns of lines first
// where that leaves much less for the second pass.
func (p *Picture) Resize(width, height int, f Filter) *Picture {
	if height < p.Height && p.Height-height > 2*(p.Width-width) {
		return p.down(height, f).along(width, f)
	}
	return p.along(width, f).down(height, f)
}

// along brings lines to a width.
func (p *Picture) along(width int, f Filter) *Picture {
	if width == p.Width {
		return p
	}
	out := &Picture{Width: width, Height: p.Height, Pix: make([]byte, 3*width*p.Height)}
	taps := f.taps(p.Width, width)
	for y := range p.Height {
		line := p.Pix[3*y*p.Width:][:3*p.Width]
		for x, t := range taps {
			var r, g, b int32 = 1 << (precision - 1), 1 << (precision - 1), 1 << (precision - 1)
			from := line[3*t.first:]
			for k, w := range t.weights {
				r += int32(from[3*k]) * w
				g += int32(from[3*k+1]) * w
				b += int32(from[3*k+2]) * w
			}
			to := out.Pix[3*(y*width+x):][:3]
			to[0], to[1], to[2] = clamp8(int(r>>precision)), clamp8(int(g>>precision)), clamp8(int(b>>precision))
		}
	}
	return out
}

// down brings columns to a height.
func (p *Picture) down(height int, f Filter) *Picture {
	if height == p.Height {
		return p
	}
	n := 3 * p.Width
	out := &Picture{Width: p.Width, Height: height, Pix: make([]byte, n*height)}
	sums := make([]int32, n)
	for y, t := range f.taps(p.Height, height) {
		for i := range sums {
			sums[i] = 1 << (precision - 1)
		}
		for k, w := range t.weights {
			for i, v := range p.Pix[(t.first+k)*n:][:n] {
				sums[i] += int32(v) * w
			}
		}
		for i, s := range sums {
			out.Pix[y*n+i] = clamp8(int(s >> precision))
		}
	}
	return out
}
