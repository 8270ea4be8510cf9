package xpu

import (
	"math"

	"roundhouse/kernels"
)

// draw draws from all tokens that a job saw: chunk after chunk by their sums, then token
// after token within the chunk, by ascending token. The device brought the sums, and the
// logits of the chunk that it thinks the draw falls into; where edits move the draw to
// another, the whole row is needed (false).
func (s *sampler) draw(n int, sm *kernels.Sampling, changed []change) (int32, bool) {
	j := &s.jobs[n]
	words := s.answer[j.at:]
	most, t, guess := float64(floatOf(words[0])), float64(sm.Temperature), int(words[3])
	words = words[headWords+2*j.wanted:]
	sums := make([]float64, s.chunks)
	for k := range sums {
		sums[k] = float64(floatOf(words[k]))
	}
	for _, c := range changed {
		k := int(c.token) / chunkTokens
		sums[k] = max(0, sums[k]+math.Exp((float64(c.after)-most)/t)-math.Exp((float64(c.before)-most)/t))
	}
	var total float64
	for _, v := range sums {
		total += v
	}
	if math.IsInf(total, 0) || !(total > 0) {
		return 0, false
	}
	left, chunk := sm.Uniform()*total, 0
	for chunk < len(sums)-1 && left >= sums[chunk] {
		left -= sums[chunk]
		chunk++
	}
	if chunk != guess {
		return 0, false
	}
	return s.within(words[s.chunks:][:chunkTokens], chunk, left, sm, most, changed)
}

// within finds the token at which what is left of a draw is used up. Where rounding
// leaves something over, it is the last token with any chance.
func (s *sampler) within(logits []int32, chunk int, left float64, sm *kernels.Sampling, most float64, changed []change) (token int32, ok bool) {
	for k, w := range logits {
		id := int32(chunk*chunkTokens + k)
		if int(id) >= s.vocab {
			break
		}
		if sm.Allowed != nil && sm.Allowed[id/32]>>(id%32)&1 == 0 {
			continue
		}
		v := float64(floatOf(w))
		for _, c := range changed {
			if c.token == id {
				v = float64(c.after)
			}
		}
		chance := math.Exp((v - most) / float64(sm.Temperature))
		if chance == 0 {
			continue
		}
		token, ok = id, true
		if left -= chance; left < 0 {
			break
		}
	}
	return token, ok
}
