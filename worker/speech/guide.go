package speech

import "slices"

// Guide holds one text to its rules: what is never written, what is not written
// first, and with times that they come in pairs around what was said, do not fall,
// and begin near the beginning. It is a worker.Guide.
type Guide struct {
	w     *Words
	times bool
	out   []int32 // the text so far
	last  int32   // the last time; -1: none
	mask  []uint32
	base  []uint32 // what is never written taken off
}

// Guide begins a text.
func (w *Words) Guide(times bool) *Guide {
	g := &Guide{w: w, times: times, last: -1, mask: make([]uint32, (w.vocab+31)/32), base: make([]uint32, (w.vocab+31)/32)}
	set(g.base, 0, int32(w.vocab), true)
	for _, id := range w.suppress {
		set(g.base, id, id+1, false)
	}
	if times {
		set(g.base, w.Plain, w.Plain+1, false)
	}
	return g
}

// set has a mask allow tokens from first to end, or not.
func set(mask []uint32, first, end int32, yes bool) {
	for id := first; id < end; id++ {
		if yes {
			mask[id/32] |= 1 << (id % 32)
		} else {
			mask[id/32] &^= 1 << (id % 32)
		}
	}
}

// Times is the first token that is a time; 0: the text has none.
func (g *Guide) Times() int32 {
	if g.times {
		return g.w.Plain + 1
	}
	return 0
}

// Mask implements worker.Guide.
func (g *Guide) Mask(int) []uint32 {
	copy(g.mask, g.base)
	if len(g.out) == 0 {
		for _, id := range g.w.first {
			set(g.mask, id, id+1, false)
		}
	}
	if g.times {
		g.maskTimes(g.w.Plain+1, int32(g.w.vocab))
	}
	return g.mask
}

// maskTimes takes off what the times before do not allow; the times are from zero
// to end.
func (g *Guide) maskTimes(zero, end int32) {
	n := len(g.out)
	lately := n >= 1 && g.out[n-1] >= zero
	before := n < 2 || g.out[n-2] >= zero
	switch {
	case n == 0:
		set(g.mask, 0, zero, false)
		if latest := g.w.latest; latest >= 0 {
			set(g.mask, min(end, zero+int32(min(latest, int(end)))+1), end, false)
		}
	case lately && before:
		set(g.mask, zero, end, false) // what was said follows
	case lately:
		set(g.mask, 0, g.w.End, false) // the next stretch begins, or the text ends
	}
	if g.last >= 0 {
		from := g.last + 1
		if lately && !before {
			from = g.last // the next stretch may begin where this one ends
		}
		set(g.mask, zero, min(from, end), false)
	}
}

// Accept implements worker.Guide.
func (g *Guide) Accept(token int32) bool {
	mask := g.Mask(0)
	ok := token >= 0 && int(token) < g.w.vocab && mask[token/32]>>(token%32)&1 != 0
	g.out = append(g.out, token)
	if g.times && token > g.w.Plain {
		g.last = token
	}
	return ok
}

// Done implements worker.Guide: the token of the end is the model's own.
func (g *Guide) Done() bool { return false }

// Text are the tokens of a text that are words.
func (w *Words) Text(tokens []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(tokens), func(id int32) bool { return id >= w.End })
}
