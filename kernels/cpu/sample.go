package cpu

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"roundhouse/kernels"
)

// mostTop is how many candidates a row can ask for.
const mostTop = 64

// sample adds the stage that chooses tokens, one row after another.
func (pl *plan) sample(op *kernels.Sample) {
	x := pl.x
	rows, vocab := x.limits.Rows, x.p.Width(op.Logits)
	x.choices = make([]kernels.Choice, rows)
	x.logits = make([][]float32, 0, rows)
	tops := make([]kernels.Candidate, rows*min(mostTop, vocab))
	pl.keep = append(pl.keep, int(op.Logits))
	pl.stage(stage{reads: operand(op.Logits), writes: operand(op.Logits), rowwise: true, rows: kernels.Sampled, run: func(thread int) {
		first, last := x.share(kernels.Sampled, thread)
		for i := first; i < last; i++ {
			row := x.row(op.Logits, i)
			if op.SoftCap > 0 {
				for k, v := range row {
					row[k] = op.SoftCap * tanh(v/op.SoftCap)
				}
			}
			if x.step.Sampling == nil {
				continue
			}
			c := &x.choices[:rows][i]
			n := min(mostTop, vocab)
			c.Top = tops[i*n:][:0:n]
			x.describe(c, row, &x.step.Sampling[i], &x.scratch[thread])
		}
	}})
	x.results = append(x.results, func() {
		n := x.counts[kernels.Sampled]
		if x.step.Sampling != nil {
			x.choices = x.choices[:n]
		}
		for i := range n {
			if x.step.WantLogits {
				x.logits = append(x.logits, x.row(op.Logits, i))
			}
		}
	})
}

// describe chooses a token and says how it stands among the others.
func (x *executable) describe(c *kernels.Choice, row []float32, sm *kernels.Sampling, s *scratch) {
	s.edit(row, sm.Edits)
	token := s.choose(x.level, row, sm)
	s.restore(row, sm.Edits)
	if token < 0 { // nothing is allowed: the mask is not followed
		token = s.choose(x.level, row, &kernels.Sampling{TopP: 1})
	}
	most := x.level.greatest(row)
	c.Token, c.Logit, c.Rank = token, row[token], 1
	c.LogSumExp = most + float32(math.Log(s.sum(x.level, row, 1, most)))
	if c.Logit != most || sm.Temperature != 0 || sm.Edits != nil || sm.Allowed != nil {
		for _, v := range row[:token] {
			if v >= c.Logit {
				c.Rank++
			}
		}
		for _, v := range row[token:] {
			if v > c.Logit {
				c.Rank++
			}
		}
	}
	c.Top = best(c.Top, row, min(int(sm.Top), mostTop, len(row)))
	c.Probe = c.Probe[:0]
	for _, p := range sm.Probe {
		c.Probe = append(c.Probe, row[p])
	}
}

// edit changes logits and remembers what they were.
func (s *scratch) edit(row []float32, edits []kernels.Edit) {
	s.before = s.before[:0]
	for _, e := range edits {
		v := row[e.Token]
		s.before = append(s.before, v)
		if v > 0 {
			v /= e.Repetition
		} else {
			v *= e.Repetition
		}
		row[e.Token] = v + e.Add
	}
}

// restore undoes edit, the last first: a token may have been edited twice.
func (s *scratch) restore(row []float32, edits []kernels.Edit) {
	for i := len(edits) - 1; i >= 0; i-- {
		row[edits[i].Token] = s.before[i]
	}
}

// sum is Σ exp(row · inverse - most), in a fixed order.
func (s *scratch) sum(l *level, row []float32, inverse, most float32) float64 {
	var sum float64
	for len(row) > 0 {
		n := min(len(row), split)
		sum += float64(l.exponents(s.scores[:n], row[:n], inverse, most))
		row = row[n:]
	}
	return sum
}

// choose takes the greatest logit, or draws; -1 if nothing is allowed.
func (s *scratch) choose(l *level, row []float32, sm *kernels.Sampling) int32 {
	if sm.Allowed != nil {
		s.allowed(row, sm.Allowed)
		if len(s.picks) == 0 {
			return -1
		}
		if sm.Temperature == 0 {
			return slices.MinFunc(s.picks, better).Token
		}
		return s.draw(sm, nil, l)
	}
	if sm.Temperature == 0 {
		return max(0, int32(slices.Index(row, l.greatest(row))))
	}
	return s.draw(sm, row, l)
}

// allowed lists the tokens of a mask.
func (s *scratch) allowed(row []float32, mask []uint32) {
	s.picks = s.picks[:0]
	for i, word := range mask[:(len(row)+31)/32] {
		for ; word != 0; word &= word - 1 {
			if token := 32*i + bits.TrailingZeros32(word); token < len(row) {
				s.picks = append(s.picks, kernels.Candidate{Token: int32(token), Logit: row[token]})
			}
		}
	}
}

// better orders candidates: the greater logit first, ties to the lower id.
func better(a, b kernels.Candidate) int {
	if a.Logit != b.Logit {
		return cmp.Compare(b.Logit, a.Logit)
	}
	return cmp.Compare(a.Token, b.Token)
}

// draw keeps what min_p, top_k and top_p leave, and walks it by ascending id:
// the first token at which the running sum exceeds the random number is it.
// With a nil row the candidates are s.picks, else all of the row.
func (s *scratch) draw(sm *kernels.Sampling, row []float32, l *level) int32 {
	inverse := 1 / sm.Temperature
	listed := row == nil
	var most float32
	if listed {
		most = slices.MinFunc(s.picks, better).Logit * inverse
	} else {
		most = l.greatest(row) * inverse
	}
	chance := func(logit float32) float64 { return float64(exp(float32(logit*inverse) - most)) }
	if sm.TopK <= 0 && sm.TopP >= 1 {
		if listed || sm.MinP > 0 {
			if !listed {
				s.above(row, func(v float32) bool { return chance(v) >= float64(sm.MinP) })
			}
			s.picks = slices.DeleteFunc(s.picks, func(c kernels.Candidate) bool { return chance(c.Logit) < float64(sm.MinP) })
			return walk(s.picks, sm.Uniform(), chance)
		}
		return s.walkRow(l, row, inverse, most, sm.Uniform())
	}
	if listed {
		slices.SortFunc(s.picks, better)
		s.narrow(sm, len(s.picks), chance, math.Inf(1))
	} else {
		s.gather(sm, row, l, inverse, most, chance)
	}
	slices.SortFunc(s.picks, func(a, b kernels.Candidate) int { return cmp.Compare(a.Token, b.Token) })
	return walk(s.picks, sm.Uniform(), chance)
}

// above lists the tokens of a row that pass.
func (s *scratch) above(row []float32, pass func(float32) bool) {
	s.picks = s.picks[:0]
	for i, v := range row {
		if pass(v) {
			s.picks = append(s.picks, kernels.Candidate{Token: int32(i), Logit: v})
		}
	}
}

// gather lists the nucleus of a row: candidates near the greatest first, and
// further ones only while they might still be of it.
func (s *scratch) gather(sm *kernels.Sampling, row []float32, l *level, inverse, most float32, chance func(float32) float64) {
	total := math.Inf(1) // of all that min_p leaves; used where top_k is off
	if sm.TopK <= 0 && sm.MinP <= 0 {
		total = s.sum(l, row, inverse, most)
	}
	for depth := float32(6); ; depth *= 2 {
		least := most - depth
		all := depth > 200
		s.above(row, func(v float32) bool { return all || float32(v*inverse) >= least })
		slices.SortFunc(s.picks, better)
		if s.narrow(sm, len(row), chance, total) || all {
			return
		}
	}
}

// narrow cuts the sorted candidates to the nucleus; false where those that were
// not listed might belong to it. There are all of them in all; total is the
// sum of the chances of all, or infinite where the list itself is to be summed.
func (s *scratch) narrow(sm *kernels.Sampling, all int, chance func(float32) float64, total float64) bool {
	n := len(s.picks)
	complete := n == all
	if sm.MinP > 0 {
		for n > 1 && chance(s.picks[n-1].Logit) < float64(sm.MinP) {
			n--
			complete = true
		}
	}
	if sm.TopK > 0 && n >= int(sm.TopK) {
		n, complete = int(sm.TopK), true
	}
	if sm.TopP >= 1 {
		s.picks = s.picks[:n]
		return complete
	}
	if math.IsInf(total, 1) {
		if !complete {
			return false
		}
		total = 0
		for _, c := range s.picks[:n] {
			total += chance(c.Logit)
		}
	}
	var sum float64
	for i, c := range s.picks[:n] {
		if sum += chance(c.Logit); sum >= float64(sm.TopP)*total {
			s.picks = s.picks[:i+1]
			return true
		}
	}
	s.picks = s.picks[:n]
	return complete
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
func (s *scratch) walkRow(l *level, row []float32, inverse, most float32, u float64) int32 {
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

// best appends the n greatest of a row to top, the greatest first.
func best(top []kernels.Candidate, row []float32, n int) []kernels.Candidate {
	if n <= 0 {
		return top
	}
	for i, v := range row {
		if len(top) == n {
			if v <= top[n-1].Logit {
				continue
			}
			top = top[:n-1]
		}
		at := len(top)
		for at > 0 && top[at-1].Logit < v {
			at--
		}
		top = slices.Insert(top, at, kernels.Candidate{Token: int32(i), Logit: v})
	}
	return top
}
