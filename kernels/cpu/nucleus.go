package cpu

import (
	"math"
	"slices"

	"roundhouse/kernels"
)

// chances turns logits into probabilities that do not add up to one yet: that
// of the greatest is one.
type chances struct{ inverse, most float32 }

// of is the chance of a logit.
func (c chances) of(logit float32) float64 {
	return float64(exp(float32(logit*c.inverse) - c.most))
}

// depth is how far a logit lies below the greatest, after the temperature.
func (c chances) depth(logit float32) float32 { return c.most - float32(logit*c.inverse) }

// draw keeps what min_p, top_k and top_p leave, and walks it by ascending id:
// the first token at which the running sum exceeds the random number is it.
// With a nil row the candidates are s.picks, else all of the row.
func (s *scratch) draw(sm *kernels.Sampling, row []float32, l *isa) int32 {
	inverse := 1 / sm.Temperature
	listed := row == nil
	var most float32
	if listed {
		most = slices.MinFunc(s.picks, better).Logit * inverse
	} else {
		most = l.greatest(row) * inverse
	}
	chance := chances{inverse, most}.of
	if sm.TopK <= 0 && sm.TopP >= 1 {
		if listed || sm.MinP > 0 {
			if !listed {
				s.above(l, row, func(v float32) bool { return chance(v) >= float64(sm.MinP) })
			}
			s.picks = slices.DeleteFunc(s.picks, func(c kernels.Candidate) bool { return chance(c.Logit) < float64(sm.MinP) })
			return walk(s.picks, sm.Uniform(), chance)
		}
		return s.walkRow(l, row, inverse, most, sm.Uniform())
	}
	c := chances{inverse, most}
	if listed {
		s.narrow(sm, len(s.picks), c, math.Inf(1))
	} else {
		s.gather(sm, row, l, c)
	}
	return walk(s.picks, sm.Uniform(), chance)
}

// above lists the tokens of a row that pass; what passes is all from some logit
// on.
func (s *scratch) above(l *isa, row []float32, pass func(float32) bool) {
	s.picks = s.picks[:0]
	for at := 0; at < len(row); at += stretch {
		part := row[at:min(at+stretch, len(row))]
		if !pass(l.greatest(part)) {
			continue
		}
		for i, v := range part {
			if pass(v) {
				s.picks = append(s.picks, kernels.Candidate{Token: int32(at + i), Logit: v})
			}
		}
	}
}

// gather lists the nucleus of a row: candidates near the greatest first, and
// further ones only while they might still be of it.
func (s *scratch) gather(sm *kernels.Sampling, row []float32, l *isa, c chances) {
	total := math.Inf(1) // of all that min_p leaves; used where top_k is off
	if sm.TopK <= 0 && sm.MinP <= 0 {
		total = s.sum(l, row, c.inverse, c.most)
	}
	for depth := float32(6); ; depth *= 2 {
		all := depth > 200
		s.above(l, row, func(v float32) bool { return all || c.depth(v) <= depth })
		if s.narrow(sm, len(row), c, total) || all {
			return
		}
	}
}

// narrow cuts the candidates to the nucleus; false where those that were not
// listed might belong to it. There are all of them in all; total is the sum of
// the chances of all, or infinite where the list itself is to be summed.
func (s *scratch) narrow(sm *kernels.Sampling, all int, c chances, total float64) bool {
	complete := len(s.picks) == all
	if sm.MinP > 0 {
		before := len(s.picks)
		s.picks = slices.DeleteFunc(s.picks, func(p kernels.Candidate) bool { return c.of(p.Logit) < float64(sm.MinP) })
		complete = complete || len(s.picks) < before
	}
	if sm.TopK > 0 && len(s.picks) >= int(sm.TopK) {
		s.cut(c, func(count int, _ float64) bool { return count >= int(sm.TopK) })
		complete = true
	}
	if sm.TopP >= 1 {
		return complete
	}
	var listed float64
	for _, p := range s.picks {
		listed += c.of(p.Logit)
	}
	if math.IsInf(total, 1) {
		if !complete {
			return false
		}
		total = listed
	}
	want := float64(sm.TopP) * total
	if listed < want && !complete {
		return false
	}
	s.cut(c, func(_ int, sum float64) bool { return sum >= want })
	return true
}

// steps of a logit that cut tells apart, and how many.
const (
	stepsPerUnit = 32
	steps        = 4096
)

// step is how far a candidate lies below the greatest, in steps.
func (c chances) step(p kernels.Candidate) int {
	if d := c.depth(p.Logit) * stepsPerUnit; d < steps-1 {
		return max(int(d), 0)
	}
	return steps - 1
}

// cut drops the candidates after the one at which enough is reached, from the
// greatest on; the others stay in their order, by id. However wide the nucleus,
// no more than the candidates of one step of logits are sorted.
func (s *scratch) cut(c chances, enough func(count int, sum float64) bool) {
	last, n, sum := s.edgeStep(c, enough)
	s.edge = s.edge[:0]
	for _, p := range s.picks {
		if c.step(p) == last {
			s.edge = append(s.edge, p)
		}
	}
	slices.SortFunc(s.edge, better)
	for _, e := range s.edge {
		n++
		if sum += c.of(e.Logit); enough(n, sum) {
			s.picks = slices.DeleteFunc(s.picks, func(p kernels.Candidate) bool { return better(p, e) > 0 })
			return
		}
	}
}

// edgeStep is the step of logits within which enough is reached, and what comes
// before it: how many candidates, and the sum of their chances.
func (s *scratch) edgeStep(c chances, enough func(count int, sum float64) bool) (last, n int, sum float64) {
	if s.counts == nil {
		s.counts, s.masses = make([]int32, steps), make([]float64, steps)
	}
	clear(s.counts)
	clear(s.masses)
	for _, p := range s.picks {
		i := c.step(p)
		s.counts[i]++
		s.masses[i] += c.of(p.Logit)
	}
	for last < steps-1 && !enough(n+int(s.counts[last]), sum+s.masses[last]) {
		n += int(s.counts[last])
		sum += s.masses[last]
		last++
	}
	return last, n, sum
}

// walk draws from a list in its order.
func walk(list []kernels.Candidate, u float64, chance func(float32) float64) int32 {
	var total float64
	for _, c := range list {
		total += chance(c.Logit)
	}
	u *= total
	for _, c := range list {
		if u -= chance(c.Logit); u < 0 {
			return c.Token
		}
	}
	return list[len(list)-1].Token
}

// walkRow draws from all of a row.
func (s *scratch) walkRow(l *isa, row []float32, inverse, most float32, u float64) int32 {
	u *= s.sum(l, row, inverse, most)
	last := 0
	for at := 0; at < len(row); at += split {
		n := min(len(row)-at, split)
		sum := float64(l.exponents(s.scores[:n], row[at:at+n], inverse, most))
		if u >= sum && at+n < len(row) {
			u -= sum
			continue
		}
		for i, p := range s.scores[:n] {
			if p > 0 {
				last = at + i
			}
			if u -= float64(p); u < 0 {
				return int32(at + i)
			}
		}
	}
	return int32(last)
}
