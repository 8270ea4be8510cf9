package grammar

import "slices"

// A rule that begins with itself, such as sum ::= sum "+" n | n, would call
// itself for ever. unfoldLeft writes such rules as repetitions, n ("+" n)*,
// also where they begin with each other. A rule that calls itself behind a
// rule that may be empty stays, and checkLeftRecursion refuses it.

// unfoldLeft rewrites the rules from number first on.
func (p *program) unfoldLeft(first int) {
	for _, ring := range p.rings(first) {
		in := map[int]int{}
		for i, r := range ring {
			in[r] = i
		}
		for _, r := range ring {
			p.unfold(r, p.begun(r, in))
		}
	}
}

// begun splits a rule of a ring, with the rules that were rewritten before it
// put in.
func (p *program) begun(r int, in map[int]int) []head {
	ways := p.heads(p.rules[r], in)
	for changed := true; changed; {
		changed = false
		var next []head
		for _, h := range ways {
			if h.rule < 0 || in[h.rule] >= in[r] {
				next = append(next, h)
				continue
			}
			changed = true
			for _, g := range p.heads(p.rules[h.rule], in) {
				p.spend(1)
				next = append(next, head{g.rule, seqExpr{g.rest, h.rest}})
			}
		}
		ways = next
	}
	return ways
}

// unfold writes a rule as what it begins with, and then any of the ways that
// go on from itself.
func (p *program) unfold(r int, ways []head) {
	var begin, more altExpr
	for _, h := range ways {
		switch h.rule {
		case r:
			more = append(more, h.rest)
		case -1:
			begin = append(begin, h.rest)
		default:
			begin = append(begin, seqExpr{ruleExpr(h.rule), h.rest})
		}
	}
	p.rules[r] = begin
	if len(more) > 0 {
		p.rules[r] = seqExpr{begin, repExpr{more, 0, -1}}
	}
}

// head is a way through an expression: it begins with a rule, -1 for none of
// those that are looked for, and goes on with the rest.
type head struct {
	rule int
	rest expr
}

// heads splits an expression by the rules of a set that it may begin with.
func (p *program) heads(x expr, in map[int]int) []head {
	p.spend(1)
	switch x := x.(type) {
	case ruleExpr:
		if _, ok := in[int(x)]; ok {
			return []head{{int(x), seqExpr{}}}
		}
	case altExpr:
		var out []head
		for _, a := range x {
			out = append(out, p.heads(a, in)...)
		}
		return out
	case seqExpr:
		if len(x) == 0 {
			break
		}
		first := p.heads(x[0], in)
		if !slices.ContainsFunc(first, func(h head) bool { return h.rule >= 0 || h.empty() }) {
			break
		}
		var out []head
		for _, h := range first {
			if h.rule < 0 && h.empty() {
				out = append(out, p.heads(x[1:], in)...)
			} else {
				out = append(out, head{h.rule, seqExpr{h.rest, x[1:]}})
			}
		}
		return out
	case repExpr:
		if x.max == 0 {
			return []head{{-1, seqExpr{}}}
		}
		inner := p.heads(x.x, in)
		if !slices.ContainsFunc(inner, func(h head) bool { return h.rule >= 0 }) {
			break
		}
		var out []head
		again := repExpr{x.x, atLeastZero(x.min - 1), max(x.max-1, -1)}
		for _, h := range inner {
			out = append(out, head{h.rule, seqExpr{h.rest, again}})
		}
		if x.min == 0 {
			out = append(out, head{-1, seqExpr{}})
		}
		return out
	}
	return []head{{-1, x}}
}

// empty reports whether nothing is left.
func (h head) empty() bool {
	rest, ok := h.rest.(seqExpr)
	return ok && len(rest) == 0
}

// rings returns the sets of rules that begin with each other, or with
// themselves.
func (p *program) rings(first int) [][]int {
	t := &ringFinder{p: p, all: map[int]int{}, number: map[int]int{}, low: map[int]int{}, open: map[int]bool{}}
	for r := first; r < len(p.rules); r++ {
		t.all[r] = r
	}
	for r := first; r < len(p.rules); r++ {
		if t.number[r] == 0 {
			t.visit(r)
		}
	}
	return t.rings
}

// ringFinder finds strongly connected rules, by Tarjan's way.
type ringFinder struct {
	p           *program
	all         map[int]int
	number, low map[int]int
	open        map[int]bool
	stack       []int
	rings       [][]int
}

func (t *ringFinder) visit(r int) {
	t.number[r] = len(t.number) + 1
	t.low[r] = t.number[r]
	t.stack = append(t.stack, r)
	t.open[r] = true
	self := false
	for _, called := range t.p.firsts(t.p.rules[r], t.all) {
		self = self || called == r
		if t.number[called] == 0 {
			t.visit(called)
			t.low[r] = min(t.low[r], t.low[called])
		} else if t.open[called] {
			t.low[r] = min(t.low[r], t.number[called])
		}
	}
	if t.low[r] != t.number[r] {
		return
	}
	for i := len(t.stack) - 1; ; i-- {
		t.open[t.stack[i]] = false
		if t.stack[i] == r {
			if ring := append([]int(nil), t.stack[i:]...); self || len(ring) > 1 {
				t.rings = append(t.rings, ring)
			}
			t.stack = t.stack[:i]
			return
		}
	}
}

// firsts returns the rules of a set that an expression may begin with.
func (p *program) firsts(x expr, in map[int]int) []int {
	var out []int
	for _, h := range p.heads(x, in) {
		if h.rule >= 0 {
			out = append(out, h.rule)
		}
	}
	return out
}
