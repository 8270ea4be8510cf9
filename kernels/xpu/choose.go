package xpu

import (
	"math"
	"slices"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// slack bounds the relative error of a sum of exponents that the device made. What it
// leaves undecided is decided on the whole row.
const slack = 1e-4

// answers chooses a token for each row from what the device found.
func (s *sampler) answers(all []kernels.Sampling) ([]kernels.Choice, error) {
	s.choice = s.choice[:0]
	for i := range all {
		c, ok := s.choose(i, &all[i])
		if !ok {
			row, err := s.whole(i)
			if err != nil {
				return nil, err
			}
			c = ref.Describe(row, &all[i])
		}
		s.choice = append(s.choice, c)
	}
	return s.choice, nil
}

// list is the candidates of a job, the first one first; all says that there are no others.
func (s *sampler) list(n int) (list []kernels.Candidate, all bool) {
	j := &s.jobs[n]
	words := s.answer[j.at+headWords:][:2*j.wanted]
	for ; len(words) > 0; words = words[2:] {
		if words[1] == math.MaxInt32 {
			return list, true
		}
		list = append(list, kernels.Candidate{Token: words[1], Logit: floatOf(words[0])})
	}
	return list, j.wanted >= s.vocab
}

func floatOf(w int32) float32 { return math.Float32frombits(uint32(w)) }

// choose is Describe from what the device found; false where that does not decide.
func (s *sampler) choose(i int, sm *kernels.Sampling) (c kernels.Choice, ok bool) {
	a := &s.asks[i]
	ranked, _ := s.list(a.whole)
	head := s.answer[s.jobs[a.whole].at:]
	most, sum := float64(floatOf(head[0])), float64(floatOf(head[1]))
	if math.IsInf(most, 0) || !(sum > 0) || math.IsInf(sum, 0) {
		return c, false // infinite or not numbers: the definition says what comes of them
	}
	token, ok := s.token(i, sm, ranked)
	if !ok {
		return c, false
	}
	c.Token, c.LogSumExp = token, float32(most+math.Log(sum))
	at := slices.IndexFunc(ranked, func(r kernels.Candidate) bool { return r.Token == token })
	if at < 0 {
		return s.ranked(i, sm, c)
	}
	c.Logit, c.Rank = ranked[at].Logit, int32(at+1)
	s.rest(i, sm, ranked, &c)
	return c, true
}

// rest fills in what a choice says besides its token.
func (s *sampler) rest(i int, sm *kernels.Sampling, ranked []kernels.Candidate, c *kernels.Choice) {
	c.Top = ranked[:min(int(sm.Top), mostWanted, len(ranked))]
	for p := range sm.Probe {
		c.Probe = append(c.Probe, floatOf(s.answer[s.asks[i].probes+p]))
	}
}

// ranked finishes the choice of a token that is not among the first: its rank takes the
// whole row.
func (s *sampler) ranked(i int, sm *kernels.Sampling, c kernels.Choice) (kernels.Choice, bool) {
	row, err := s.whole(i)
	if err != nil {
		return c, false // whole fails again, and is heard
	}
	c.Logit, c.Rank = row[c.Token], 1
	for t, v := range row {
		if v > c.Logit || v == c.Logit && int32(t) < c.Token {
			c.Rank++
		}
	}
	list, _ := s.list(s.asks[i].whole)
	s.rest(i, sm, list, &c)
	return c, true
}

// token finds the token of one row; false where the whole row is needed.
func (s *sampler) token(i int, sm *kernels.Sampling, ranked []kernels.Candidate) (int32, bool) {
	a := &s.asks[i]
	n := a.whole
	if a.masked >= 0 {
		n = a.masked
	}
	list, all := s.list(n)
	if cut := slices.IndexFunc(list, impossible); cut >= 0 {
		list, all = list[:cut], true
	}
	if len(list) == 0 { // nothing is allowed: the mask is not followed
		return ranked[0].Token, true
	}
	kept, sure, changed := list, len(list), []change(nil)
	if len(sm.Edits) > 0 {
		changed = s.changes(i, sm)
		kept, sure = merged(list, changed, all)
	}
	if sure == 0 {
		return 0, false
	}
	if sm.Temperature == 0 {
		return kept[0].Token, true
	}
	if everything(sm, s.vocab) {
		return s.draw(n, sm, changed)
	}
	return s.nucleus(n, sm, kept, sure, all, changed)
}

// change is what an edit makes of one allowed token.
type change struct {
	token         int32
	before, after float32
}

// changes applies the edits of a row to the logits that were looked up.
func (s *sampler) changes(i int, sm *kernels.Sampling) []change {
	var out []change
	for k, e := range sm.Edits {
		if sm.Allowed != nil && sm.Allowed[e.Token/32]>>(e.Token%32)&1 == 0 {
			continue
		}
		v := floatOf(s.answer[s.asks[i].edits+k])
		if n := len(out); n == 0 || out[n-1].token != e.Token { // a token may be edited twice
			out = append(out, change{e.Token, v, v})
		}
		to := &out[len(out)-1]
		to.after = e.Of(to.after)
	}
	return out
}

// impossible reports whether a candidate cannot be chosen.
func impossible(c kernels.Candidate) bool { return math.IsInf(float64(c.Logit), -1) }

// merged is the candidates after edits, in order. Those beyond the last of the list are
// not known; sure is how many stand before all of them.
func merged(list []kernels.Candidate, changed []change, all bool) (kept []kernels.Candidate, sure int) {
	for _, c := range list {
		if !slices.ContainsFunc(changed, func(e change) bool { return e.token == c.Token }) {
			kept = append(kept, c)
		}
	}
	for _, e := range changed {
		kept = append(kept, kernels.Candidate{Token: e.token, Logit: e.after})
	}
	kept = slices.DeleteFunc(kept, impossible)
	slices.SortFunc(kept, ref.Better)
	if all {
		return kept, len(kept)
	}
	last := list[len(list)-1]
	for sure < len(kept) && ref.Better(kept[sure], last) <= 0 {
		sure++
	}
	return kept, sure
}

// nucleus cuts the candidates as min_p, top_k and top_p say and draws; false where they
// reach beyond what is sure.
func (s *sampler) nucleus(n int, sm *kernels.Sampling, kept []kernels.Candidate, sure int, all bool, changed []change) (int32, bool) {
	p := make([]float64, sure)
	cut := math.MaxInt
	for i, c := range kept[:sure] {
		p[i] = math.Exp((float64(c.Logit) - float64(kept[0].Logit)) / float64(sm.Temperature))
		if p[i] < float64(sm.MinP) {
			cut = i
			break
		}
	}
	if sm.TopK > 0 {
		cut = min(cut, int(sm.TopK))
	}
	plain := *sm
	plain.MinP, plain.TopK = 0, 0
	if all || cut <= sure {
		return ref.Draw(kept[:min(cut, sure)], &plain), true
	}
	if sm.TopP >= 1 || sm.MinP > 0 || sm.TopK > 0 && int(sm.TopK) < s.vocab {
		return 0, false
	}
	low, high := s.mass(n, sm, float64(kept[0].Logit), changed)
	var sum float64
	for i, v := range p {
		sum += v
		if sum >= float64(sm.TopP)*high {
			plain.TopP = 1
			return ref.Draw(kept[:i+1], &plain), true
		}
		if sum >= float64(sm.TopP)*low {
			return 0, false // too near to call
		}
	}
	return 0, false
}

// mass bounds the sum of exponents of all that a job saw, relative to a logit, with the
// edits in it.
func (s *sampler) mass(n int, sm *kernels.Sampling, first float64, changed []change) (low, high float64) {
	head := s.answer[s.jobs[n].at:]
	most, t := float64(floatOf(head[0])), float64(sm.Temperature)
	total := float64(floatOf(head[2])) * math.Exp((most-first)/t)
	doubt := total * slack
	for _, c := range changed {
		total += math.Exp((float64(c.after)-first)/t) - math.Exp((float64(c.before)-first)/t)
	}
	return total - doubt, total + doubt
}
