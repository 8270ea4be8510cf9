package ref

import (
	"cmp"
	"math"
	"slices"

	"roundhouse/kernels"
)

func (e *executable) sample(op *kernels.Sample, out *kernels.Result) {
	for i := range e.count(op.Logits) {
		x := e.row(op.Logits, i)
		for k := range x {
			if op.SoftCap > 0 {
				x[k] = float32(float64(op.SoftCap) * math.Tanh(float64(x[k])/float64(op.SoftCap)))
			}
		}
		if e.step.WantLogits {
			out.Logits = append(out.Logits, x)
		}
		if e.step.Sampling != nil {
			out.Sampled = append(out.Sampled, describe(x, &e.step.Sampling[i]))
		}
	}
}

// describe chooses a token and says how it stands among the others. What is not
// a number counts as -Inf, and +Inf as the greatest number.
func describe(x []float32, s *kernels.Sampling) kernels.Choice {
	x = numbers(x)
	token := choose(x, s)
	if token < 0 {
		return kernels.Choice{Token: -1}
	}
	c := kernels.Choice{Token: token, Logit: x[token], LogSumExp: logSumExp(x), Rank: 1}
	ranked := make([]kernels.Candidate, len(x))
	for i, v := range x {
		ranked[i] = kernels.Candidate{Token: int32(i), Logit: v}
		if v > c.Logit || v == c.Logit && int32(i) < token {
			c.Rank++
		}
	}
	slices.SortFunc(ranked, better)
	c.Top = ranked[:min(int(s.Top), 64, len(ranked))]
	for _, t := range s.Probe {
		c.Probe = append(c.Probe, x[t])
	}
	return c
}

// numbers is x, in memory of its own if something in it has to be replaced.
func numbers(x []float32) []float32 {
	odd := func(v float32) bool { return v != v || v > math.MaxFloat32 }
	if !slices.ContainsFunc(x, odd) {
		return x
	}
	x = slices.Clone(x)
	for i, v := range x {
		if v != v {
			x[i] = float32(math.Inf(-1))
		} else {
			x[i] = min(v, math.MaxFloat32)
		}
	}
	return x
}

// better orders candidates: the greater logit first, ties to the lower id.
func better(a, b kernels.Candidate) int {
	if a.Logit != b.Logit {
		return cmp.Compare(b.Logit, a.Logit)
	}
	return cmp.Compare(a.Token, b.Token)
}

func logSumExp(x []float32) float32 {
	most := float64(slices.Max(x))
	var sum float64
	for _, v := range x {
		sum += math.Exp(float64(v) - most)
	}
	return float32(most + math.Log(sum))
}

// choose edits the logits and takes the greatest, or draws; -1 where all are
// -Inf.
func choose(x []float32, s *kernels.Sampling) int32 {
	y := slices.Clone(x)
	for i := range s.Edits {
		e := &s.Edits[i]
		y[e.Token] = e.Of(y[e.Token])
	}
	var kept []kernels.Candidate
	for i, v := range y {
		if v > float32(math.Inf(-1)) && (s.Allowed == nil || s.Allowed[i/32]>>(i%32)&1 != 0) {
			kept = append(kept, kernels.Candidate{Token: int32(i), Logit: v})
		}
	}
	if len(kept) == 0 {
		if len(s.Edits) == 0 && s.Allowed == nil {
			return -1
		}
		return choose(x, &kernels.Sampling{TopP: 1}) // neither mask nor edits are followed
	}
	kept = s.Timed(kept)
	slices.SortFunc(kept, better)
	if s.Temperature == 0 {
		return kept[0].Token
	}
	return draw(kept, s)
}

// draw takes from the sorted candidates those that min_p, top_k and top_p
// leave, in this order, and walks them by ascending id: the first at which the
// running sum of probabilities exceeds the random number is the token.
func draw(kept []kernels.Candidate, s *kernels.Sampling) int32 {
	p := make([]float64, len(kept))
	n := len(kept)
	for i, c := range kept {
		p[i] = math.Exp((float64(c.Logit) - float64(kept[0].Logit)) / float64(s.Temperature))
		if p[i] < float64(s.MinP) && i < n {
			n = i
		}
	}
	if s.TopK > 0 {
		n = min(n, int(s.TopK))
	}
	if s.TopP < 1 {
		var total, sum float64
		for _, v := range p[:n] {
			total += v
		}
		for i, v := range p[:n] {
			if sum += v; sum >= float64(s.TopP)*total {
				n = i + 1
				break
			}
		}
	}
	chance := map[int32]float64{}
	for i := range n {
		chance[kept[i].Token] = p[i]
	}
	kept = slices.Clone(kept[:n])
	slices.SortFunc(kept, func(a, b kernels.Candidate) int { return cmp.Compare(a.Token, b.Token) })
	var total float64
	for _, c := range kept {
		total += chance[c.Token]
	}
	u := s.Uniform() * total
	for _, c := range kept {
		if u -= chance[c.Token]; u < 0 {
			return c.Token
		}
	}
	return kept[len(kept)-1].Token
}
