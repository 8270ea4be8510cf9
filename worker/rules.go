package worker

import (
	"math"
	"slices"

	"roundhouse/kernels"
)

// rules turn a request's parameters into the edits and the mask of each row.
// They follow the output token by token, so that no step walks it all again.
type rules struct {
	params  *Params
	eos     []int32
	edits   []kernels.Edit // sorted by token; of penalties and bias, without what comes and goes
	counts  map[int32]int  // of output tokens, when a penalty asks
	allowed []uint32       // of Params.Allowed
	scratch []kernels.Edit
	guide   Guide
}

// newRules starts with the prompt; output is fed by accept.
func newRules(p *Params, prompt, eos []int32, vocab int, guide Guide) *rules {
	r := &rules{params: p, eos: eos, guide: guide}
	for id, add := range p.Bias {
		r.edit(id).Add += add
	}
	if p.Repetition != 1 {
		for _, id := range prompt {
			r.edit(id).Repetition = p.Repetition
		}
	}
	if p.Frequency != 0 || p.Presence != 0 {
		r.counts = map[int32]int{}
	}
	if p.Allowed != nil {
		r.allowed = make([]uint32, (vocab+31)/32)
		for _, id := range p.Allowed {
			r.allowed[id/32] |= 1 << (id % 32)
		}
	}
	return r
}

// edit returns the edit of a token, made if there is none.
func (r *rules) edit(id int32) *kernels.Edit {
	i, ok := slices.BinarySearchFunc(r.edits, id, func(e kernels.Edit, id int32) int { return int(e.Token) - int(id) })
	if !ok {
		r.edits = slices.Insert(r.edits, i, kernels.Edit{Token: id, Repetition: 1})
	}
	return &r.edits[i]
}

// accept moves on by one output token. It says false when the guide did not
// allow it.
func (r *rules) accept(id int32) bool {
	p := r.params
	if p.Repetition != 1 {
		r.edit(id).Repetition = p.Repetition
	}
	if r.counts != nil {
		e := r.edit(id)
		if r.counts[id] == 0 {
			e.Add -= p.Presence
		}
		e.Add -= p.Frequency
		r.counts[id]++
	}
	return r.guide == nil || r.guide.Accept(id)
}

// plain says that a row of these rules depends on nothing but the logits and
// its position, so that guesses can be verified side by side.
func (r *rules) plain() bool {
	p := r.params
	return r.guide == nil && r.counts == nil && p.Repetition == 1 && len(p.BadWords) == 0 && p.MinTokens == 0
}

// sampling fills in how the next token after output is chosen.
func (r *rules) sampling(output []int32, position, branch, remaining int) kernels.Sampling {
	p := r.params
	s := kernels.Sampling{
		Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP, MinP: p.MinP,
		Seed: p.Seed, Branch: uint32(branch), Position: uint32(position),
		Edits: r.current(output, position), Allowed: r.allowed,
	}
	if p.Logprobs >= 0 {
		s.Top, s.Probe = int32(p.Logprobs), p.ProbeIDs
	}
	if r.guide != nil {
		s.Allowed = both(r.guide.Mask(remaining), r.allowed)
		if t, ok := r.guide.(Timer); ok {
			s.Times = t.Times()
		}
	}
	return s
}

// both allows what two masks allow.
func both(a, b []uint32) []uint32 {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	if len(a) != len(b) {
		return a[:0] // it fits no vocabulary, which the backend tells of this sequence alone
	}
	out := make([]uint32, len(a))
	for i := range out {
		out[i] = a[i] & b[i]
	}
	return out
}

// current adds to the standing edits what holds for this row alone: words
// that must not be completed, and the end before its time.
func (r *rules) current(output []int32, position int) []kernels.Edit {
	p := r.params
	ban := make([]int32, 0, 4)
	if position < p.MinTokens && r.guide == nil { // a guide knows where the text can end
		ban = append(append(ban, r.eos...), p.StopIDs...)
	}
	for _, word := range p.BadWords {
		head := word[:len(word)-1]
		if len(output) >= len(head) && slices.Equal(output[len(output)-len(head):], head) {
			ban = append(ban, word[len(word)-1])
		}
	}
	if len(ban) == 0 {
		return r.edits
	}
	r.scratch = append(r.scratch[:0], r.edits...)
	for _, id := range ban {
		i, ok := slices.BinarySearchFunc(r.scratch, id, func(e kernels.Edit, id int32) int { return int(e.Token) - int(id) })
		if !ok {
			r.scratch = slices.Insert(r.scratch, i, kernels.Edit{Token: id, Repetition: 1})
		}
		r.scratch[i].Add = float32(math.Inf(-1))
	}
	return r.scratch
}

// end is why a choice is complete; the zero end: it is not.
type end struct {
	why  Finish
	stop int32 // the stop token that the request named; -1: none
	mark bool  // the last token marks the end and is no part of the text
}

// ended reports whether the newest of output ends the choice, and why. room is
// how many more tokens the model's context has place for.
func (r *rules) ended(output []int32, room int) end {
	p := r.params
	if len(output) == 0 {
		return end{}
	}
	last := output[len(output)-1]
	if len(output) >= p.MinTokens || r.guide != nil {
		if !p.IgnoreEOS && slices.Contains(r.eos, last) {
			return end{FinishStop, -1, true}
		}
		if slices.Contains(p.StopIDs, last) {
			return end{FinishStop, last, true}
		}
		if r.guide != nil && r.guide.Done() {
			return end{FinishStop, -1, false}
		}
	}
	if len(output) >= p.MaxTokens || room <= 0 {
		return end{FinishLength, -1, false}
	}
	return end{}
}
