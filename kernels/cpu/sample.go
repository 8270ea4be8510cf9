package cpu

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// mostTop is how many candidates a row can ask for.
const mostTop = 64

// sample adds the stages that choose tokens. All threads look through the rows
// first, stretch by stretch, and then each chooses for its rows.
func (pl *plan) sample(op *kernels.Sample) {
	x := pl.x
	rows, vocab := x.limits.Rows, x.p.Width(op.Logits)
	x.choices = make([]kernels.Choice, rows)
	x.logits = make([][]float32, 0, rows)
	tops := make([]kernels.Candidate, rows*min(mostTop, vocab))
	pl.keep = append(pl.keep, int(op.Logits))
	v := &logitStats{x: x, logits: op.Logits, cap: op.SoftCap, each: (vocab + stretch - 1) / stretch}
	v.peaks, v.sums = make([]float32, rows*v.each), make([]float64, rows*v.each)
	peaks, sums := pl.buffer(64), pl.buffer(64) // stand for v.peaks and v.sums
	pl.stage(stage{reads: operand(op.Logits), writes: append(operand(op.Logits), peaks), run: v.look})
	pl.stage(stage{reads: append(operand(op.Logits), peaks), writes: []int{sums}, run: v.add})
	pl.stage(stage{reads: append(operand(op.Logits), peaks, sums), writes: operand(op.Logits), rowwise: true, rows: kernels.Sampled, run: func(thread int) {
		if x.step.Sampling == nil {
			return
		}
		first, last := x.share(kernels.Sampled, thread)
		for i := first; i < last; i++ {
			c, n := &x.choices[:rows][i], min(mostTop, vocab)
			c.Top = tops[i*n:][:0:n]
			v.describe(c, i, &x.step.Sampling[i], &x.scratch[thread])
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

// stretch is how many logits are looked at together: most stretches have none
// that matters, which their greatest shows.
const stretch = split

// logitStats is what all threads find out about the rows of logits, by stretch.
type logitStats struct {
	x      *executable
	logits kernels.Tensor
	cap    float32
	each   int       // stretches of a row
	peaks  []float32 // (rows, each) greatest logits
	sums   []float64 // (rows, each) Σ exp(logit - the row's greatest)
}

// stretches calls run for this thread's share of all stretches of all rows.
func (v *logitStats) stretches(thread int, run func(i, row int, part []float32)) {
	first, last := part(v.x.counts[kernels.Sampled]*v.each, thread, v.x.active)
	for i := first; i < last; i++ {
		row := v.x.row(v.logits, i/v.each)
		at := i % v.each * stretch
		run(i, i/v.each, row[at:min(at+stretch, len(row))])
	}
}

// look caps the logits and finds the greatest of each stretch.
func (v *logitStats) look(thread int) {
	l := v.x.isa
	v.stretches(thread, func(i, _ int, part []float32) {
		if v.cap > 0 {
			for k, y := range part {
				part[k] = v.cap * tanh(y/v.cap)
			}
		}
		v.peaks[i] = l.greatest(part)
	})
}

// add sums the chances of each stretch.
func (v *logitStats) add(thread int) {
	if v.x.step.Sampling == nil {
		return
	}
	l, s := v.x.isa, &v.x.scratch[thread]
	last, most := -1, float32(0)
	v.stretches(thread, func(i, row int, part []float32) {
		if row != last {
			last, most = row, greatest(v.peaks[row*v.each:][:v.each])
		}
		v.sums[i] = float64(l.exponents(s.scores[:len(part)], part, 1, most))
	})
}

// describe chooses the token of row i and says how it stands among the others.
func (v *logitStats) describe(c *kernels.Choice, i int, sm *kernels.Sampling, s *scratch) {
	l, row := v.x.isa, v.x.row(v.logits, i)
	peaks := v.peaks[i*v.each:][:v.each]
	most := greatest(peaks)
	var sum float64
	for _, part := range v.sums[i*v.each:][:v.each] {
		sum += part
	}
	if !(most > -kernels.MostLogit && most < kernels.MostLogit) || !(sum > 0) || math.IsInf(sum, 0) {
		*c = ref.Describe(row, sm) // infinite or not numbers: the definition says what comes of them
		return
	}
	token := int32(-1)
	if sm.Temperature == 0 && sm.Allowed == nil && len(sm.Edits) == 0 {
		at := max(0, slices.Index(peaks, most)) * stretch
		token = int32(at + max(0, slices.Index(row[at:min(at+stretch, len(row))], most)))
	} else {
		s.edit(row, sm.Edits)
		token = s.choose(l, row, sm)
		s.restore(row, sm.Edits)
		if token < 0 { // nothing is left: neither mask nor edits are followed
			token = s.choose(l, row, &kernels.Sampling{TopP: 1})
		}
	}
	c.Token, c.Logit, c.Rank = token, row[token], 1
	c.LogSumExp = most + float32(math.Log(sum))
	if c.Logit != most || sm.Temperature != 0 || sm.Edits != nil || sm.Allowed != nil {
		c.Rank += rank(peaks, row, token)
	}
	c.Top = best(peaks, c.Top, row, min(int(sm.Top), mostTop, len(row)))
	c.Probe = c.Probe[:0]
	for _, p := range sm.Probe {
		c.Probe = append(c.Probe, row[p])
	}
}

// rank is how many logits stand before that of a token.
func rank(peaks, row []float32, token int32) (n int32) {
	logit := row[token]
	for i, peak := range peaks {
		if peak < logit {
			continue
		}
		at := i * stretch
		for k, v := range row[at:min(at+stretch, len(row))] {
			if v > logit || v == logit && int32(at+k) < token {
				n++
			}
		}
	}
	return n
}

// edit changes logits and remembers what they were.
func (s *scratch) edit(row []float32, edits []kernels.Edit) {
	s.before = s.before[:0]
	for i := range edits {
		e := &edits[i]
		s.before = append(s.before, row[e.Token])
		row[e.Token] = e.Of(row[e.Token])
	}
}

// restore undoes edit, the last first: a token may have been edited twice.
func (s *scratch) restore(row []float32, edits []kernels.Edit) {
	for i := len(edits) - 1; i >= 0; i-- {
		row[edits[i].Token] = s.before[i]
	}
}

// sum is Σ exp(row · inverse - most), in a fixed order.
func (s *scratch) sum(l *isa, row []float32, inverse, most float32) float64 {
	var sum float64
	for len(row) > 0 {
		n := min(len(row), split)
		sum += float64(l.exponents(s.scores[:n], row[:n], inverse, most))
		row = row[n:]
	}
	return sum
}

// choose takes the greatest logit, or draws; -1 if nothing is left.
func (s *scratch) choose(l *isa, row []float32, sm *kernels.Sampling) int32 {
	if sm.Allowed != nil {
		s.allowed(row, sm.Allowed)
		if len(s.picks) == 0 {
			return -1
		}
		s.picks = s.picks[:copy(s.picks, sm.Timed(s.picks))]
		if sm.Temperature == 0 {
			return slices.MinFunc(s.picks, better).Token
		}
		return s.draw(sm, nil, l)
	}
	if sm.Temperature == 0 || len(sm.Edits) > 0 {
		most := l.greatest(row)
		if math.IsInf(float64(most), -1) {
			return -1
		}
		if sm.Temperature == 0 {
			return max(0, int32(slices.Index(row, most)))
		}
	}
	return s.draw(sm, row, l)
}

// allowed lists the tokens of a mask that can be chosen.
func (s *scratch) allowed(row []float32, mask []uint32) {
	s.picks = s.picks[:0]
	for i, word := range mask[:(len(row)+31)/32] {
		for ; word != 0; word &= word - 1 {
			if token := 32*i + bits.TrailingZeros32(word); token < len(row) && !math.IsInf(float64(row[token]), -1) {
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
func best(peaks []float32, top []kernels.Candidate, row []float32, n int) []kernels.Candidate {
	if n <= 0 {
		return top
	}
	for i, peak := range peaks {
		if len(top) == n && peak <= top[n-1].Logit {
			continue
		}
		at := i * stretch
		for j, v := range row[at:min(at+stretch, len(row))] {
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
			top = slices.Insert(top, k, kernels.Candidate{Token: int32(at + j), Logit: v})
		}
	}
	return top
}
