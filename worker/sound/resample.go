package sound

import "math"

// The filter of a resampler: a sinc under a Kaiser window. What folds back into
// the band lies 60 dB lower, and so do echoes.
const (
	crossings = 24   // zeros of the sinc on each side
	fineness  = 512  // steps of the table from one zero to the next
	kaiser    = 8.6  // shape of the window
	passed    = 0.93 // of the band, where the filter begins to fall
)

// resampler brings a stream of one rate to Rate.
type resampler struct {
	step  float64 // samples of the input for each of the output
	width float64 // samples of the input on each side that the filter sees
	scale float64 // crossings for each sample of the input
	table []float32
	in    []float32 // what the filter may still see
	first int       // index of in[0] in the input
	total int       // samples of the input so far
	out   []float32
	same  bool
}

func newResampler(rate int) *resampler {
	r := &resampler{step: float64(rate) / Rate, same: rate == Rate}
	r.scale = passed * min(1, 1/r.step)
	r.width = crossings / r.scale
	if r.same {
		return r
	}
	r.table = make([]float32, crossings*fineness+2)
	for i := range r.table {
		x := float64(i) / fineness
		sinc := 1.0
		if i > 0 {
			sinc = math.Sin(math.Pi*x) / (math.Pi * x)
		}
		inside := max(0, 1-x*x/crossings/crossings)
		r.table[i] = float32(r.scale * sinc * bessel(kaiser*math.Sqrt(inside)) / bessel(kaiser))
	}
	return r
}

// bessel is the modified Bessel function of order 0.
func bessel(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > 1e-12*sum; k++ {
		term *= x * x / 4 / k / k
		sum += term
	}
	return sum
}

// add takes samples in, and makes those that follow from them.
func (r *resampler) add(samples []float32) {
	r.total += len(samples)
	if r.same {
		r.out = append(r.out, samples...)
		return
	}
	r.in = append(r.in, samples...)
	for {
		at := float64(len(r.out)) * r.step
		if at+r.width >= float64(r.total-1) {
			break
		}
		r.out = append(r.out, r.at(at))
	}
	// What lies behind the next sample's filter is not needed again.
	if behind := int(float64(len(r.out))*r.step-r.width) - 1 - r.first; behind > 1<<14 {
		r.in = r.in[:copy(r.in, r.in[behind:])]
		r.first += behind
	}
}

// end makes the last samples, as if silence followed.
func (r *resampler) end() []float32 {
	if r.same {
		return r.out
	}
	for n := int(math.Ceil(float64(r.total) / r.step)); len(r.out) < n; {
		r.out = append(r.out, r.at(float64(len(r.out))*r.step))
	}
	return r.out
}

// at is the filter's answer at a place of the input.
func (r *resampler) at(place float64) float32 {
	low := max(int(math.Ceil(place-r.width)), r.first)
	high := min(int(math.Floor(place+r.width)), r.total-1)
	var sum float32
	for i := low; i <= high; i++ {
		x := math.Abs(place-float64(i)) * r.scale * fineness
		k := int(x)
		part := float32(x - float64(k))
		sum += r.in[i-r.first] * (r.table[k] + part*(r.table[k+1]-r.table[k]))
	}
	return sum
}
