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
		c.Rank += rank(x.level, row, token)
	}
	c.Top = best(x.level, c.Top, row, min(int(sm.Top), mostTop, len(row)))
	c.Probe = c.Probe[:0]
	for _, p := range sm.Probe {
		c.Probe = append(c.Probe, row[p])
	}
}

// stretch is how many logits are looked at together: most stretches have none
// that matters, which their greatest shows.
const stretch = 256

// rank is how many logits stand before that of a token.
func rank(l *level, row []float32, token int32) (n int32) {
	logit := row[token]
	for at := 0; at < len(row); at += stretch {
		part := row[at:min(at+stretch, len(row))]
		if l.greatest(part) < logit {
			continue
		}
		for i, v := range part {
			if v > logit || v == logit && int32(at+i) < token {
				n++
			}
		}
	}
	return n
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

// best appends the n greatest of a row to top, the greatest first.
func best(l *level, top []kernels.Candidate, row []float32, n int) []kernels.Candidate {
	if n <= 0 {
		return top
	}
	for at := 0; at < len(row); at += stretch {
		part := row[at:min(at+stretch, len(row))]
		if len(top) == n && l.greatest(part) <= top[n-1].Logit {
			continue
		}
		for i, v := range part {
			if len(top) == n {
				if v <= top[n-1].Logit {
					continue
				}
				top = top[:n-1]
			}
			k := len(top)
			for k > 0 && top[k-1].Logit < v {
				k--
			}
			top = slices.Insert(top, k, kernels.Candidate{Token: int32(at + i), Logit: v})
		}
	}
	return top
}
