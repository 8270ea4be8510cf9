package live

import (
	"math"
	"time"

	"roundhouse/balancer/control"
)

// bounds are how many kinds of first tokens there are, by how long they took.
const bounds = len(control.TTFTBounds) + 1

// sums is what happened in a stretch of time.
type sums struct {
	seconds                       float64
	ended, failed, turned, prompt int64
	tokens                        int64
	ttft                          [bounds]int64
	waiting                       int // at its end
}

func (s *sums) add(o *sums) {
	s.seconds += o.seconds
	s.ended += o.ended
	s.failed += o.failed
	s.turned += o.turned
	s.prompt += o.prompt
	s.tokens += o.tokens
	for i := range s.ttft {
		s.ttft[i] += o.ttft[i]
	}
}

// rate is so many a second; nil where no time has passed.
func (s *sums) rate(n int64) *float64 {
	if s.seconds <= 0 {
		return nil
	}
	v := round(float64(n) / s.seconds)
	return &v
}

// round leaves three digits of a figure, so that it changes when it matters.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// percentile is a time that so large a share of first tokens took at most; nil where
// there was none.
func percentile(counts []float64, share float64) *float64 {
	total := 0.0
	for _, n := range counts {
		total += n
	}
	if total == 0 {
		return nil
	}
	left := share * total
	for i, n := range counts {
		if left > n {
			left -= n
			continue
		}
		low, high := 0.0, control.TTFTBounds[len(control.TTFTBounds)-1]
		if i > 0 {
			low = control.TTFTBounds[i-1]
		}
		if i < len(control.TTFTBounds) {
			high = control.TTFTBounds[i]
		}
		v := round(low + (high-low)*left/n)
		return &v
	}
	return nil
}

func (s *sums) percentile(share float64) *float64 {
	var counts [bounds]float64
	for i, n := range s.ttft {
		counts[i] = float64(n)
	}
	return percentile(counts[:], share)
}

// window is the last minutes of a pool, look by look.
type window struct {
	looks []sums // the newest last
}

// long and short are what figures are of.
const (
	short = 5 * time.Second
	long  = 5 * time.Minute
)

// add adds what happened since the last look, and drops what is older than long.
func (w *window) add(s sums) {
	w.looks = append(w.looks, s)
	over := -long.Seconds()
	for i := range w.looks {
		over += w.looks[i].seconds
	}
	drop := 0
	for drop < len(w.looks)-1 && over >= w.looks[drop].seconds {
		over -= w.looks[drop].seconds
		drop++
	}
	w.looks = w.looks[drop:]
}

// last sums the newest looks up, over so long a time at least.
func (w *window) last(over time.Duration) (s sums) {
	for i := len(w.looks) - 1; i >= 0 && s.seconds < over.Seconds()-0.01; i-- {
		s.add(&w.looks[i])
	}
	return s
}

// before is how many waited at the beginning; nil where that is not long ago.
func (w *window) before() *int {
	if all := w.last(long); all.seconds < 0.9*long.Seconds() {
		return nil
	}
	return &w.looks[0].waiting
}
