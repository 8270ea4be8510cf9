package grammar

import (
	"regexp/syntax"
	"slices"
	"strconv"
	"unicode"
)

// language is a set of texts as a deterministic automaton over characters: what
// is needed where a pattern must be met together with a length, or by keys
// that are none of some names.
type language struct{ states []langState } // the first is where a text begins

type langState struct {
	final bool
	edges []langEdge // disjoint, in order; a character without one leads nowhere
}

type langEdge struct {
	lo, hi rune
	to     int
}

// maxLanguage bounds the states of a language.
const maxLanguage = 20_000

func (l *language) add(p *program, what string) int {
	p.spend(1)
	if len(l.states) >= maxLanguage {
		panic(specError{&LimitError{what + " needs more than " + strconv.Itoa(maxLanguage) + " states"}})
	}
	l.states = append(l.states, langState{})
	return len(l.states) - 1
}

// lengths is the texts of least to most characters; most -1: no bound.
func lengths(p *program, least, most int, what string) *language {
	l := &language{}
	last := most
	if most < 0 {
		last = least
	}
	for i := range last + 1 {
		l.add(p, what)
		l.states[i].final = i >= least
		to := i + 1
		if i == last {
			if to = i; most >= 0 {
				continue
			}
		}
		l.states[i].edges = []langEdge{{0, unicode.MaxRune, to}}
	}
	return l
}

// texts is a set of given texts.
func texts(p *program, list []string, what string) *language {
	l := &language{}
	l.add(p, what)
	for _, s := range list {
		at := 0
		for _, r := range s {
			i := slices.IndexFunc(l.states[at].edges, func(e langEdge) bool { return e.lo == r })
			if i < 0 {
				to := l.add(p, what)
				l.states[at].edges = append(l.states[at].edges, langEdge{r, r, to})
				i = len(l.states[at].edges) - 1
			}
			at = l.states[at].edges[i].to
		}
		l.states[at].final = true
	}
	for i := range l.states {
		slices.SortFunc(l.states[i].edges, func(a, b langEdge) int { return int(a.lo - b.lo) })
	}
	return l
}

// both is what lies in a and, with in, also in b; without, not in b.
func both(p *program, a, b *language, in bool, what string) *language {
	type pair struct{ a, b int }
	out := &language{}
	number := map[pair]int{}
	var order []pair
	visit := func(q pair) int {
		n, ok := number[q]
		if !ok {
			n = out.add(p, what)
			number[q] = n
			order = append(order, q)
		}
		return n
	}
	visit(pair{0, 0})
	for i := 0; i < len(order); i++ {
		q := order[i]
		var other langState // of b's dead end
		if q.b >= 0 {
			other = b.states[q.b]
		}
		out.states[i].final = a.states[q.a].final && other.final == in
		var edges []langEdge
		for _, e := range a.states[q.a].edges {
			for _, s := range split(e, other.edges) {
				if s.to >= 0 || !in {
					edges = append(edges, langEdge{s.lo, s.hi, visit(pair{e.to, s.to})})
				}
			}
		}
		p.spend(len(edges))
		out.states[i].edges = edges
	}
	return out
}

// split cuts the characters of e at the edges of another state; to is that
// state's next, -1 where it has none.
func split(e langEdge, edges []langEdge) []langEdge {
	var out []langEdge
	at := e.lo
	for _, o := range edges {
		if o.hi < at || o.lo > e.hi {
			continue
		}
		if o.lo > at {
			out = append(out, langEdge{at, o.lo - 1, -1})
			at = o.lo
		}
		hi := min(o.hi, e.hi)
		out = append(out, langEdge{at, hi, o.to})
		at = hi + 1
	}
	if at <= e.hi {
		out = append(out, langEdge{at, e.hi, -1})
	}
	return out
}

// pattern is the texts in which a regular expression is found.
func pattern(p *program, source, what string) *language {
	if len(source) > maxRegex {
		failf("%s has %d bytes; at most %d are allowed", what, len(source), maxRegex)
	}
	source = goPattern(source)
	if _, err := syntax.Parse(source, syntax.Perl); err != nil {
		failf("%s cannot be used: %w", what, err)
	}
	tree, err := syntax.Parse("(?s:.*)(?:"+source+")(?s:.*)", syntax.Perl)
	if err != nil {
		failf("%s cannot be used: %w", what, err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		failf("%s cannot be used: %w", what, err)
	}
	d := &determiner{p: p, prog: prog, what: what, number: map[string]int{}}
	d.visit([]uint32{uint32(prog.Start)}, true)
	for i := 0; i < len(d.order); i++ {
		d.expand(i)
	}
	return &d.out
}

// determiner turns a compiled expression into a language, set by set.
type determiner struct {
	p      *program
	prog   *syntax.Prog
	what   string
	out    language
	number map[string]int
	order  [][]uint32 // instructions before their empty steps
}

func (d *determiner) visit(set []uint32, begin bool) int {
	key := strconv.FormatBool(begin)
	for _, i := range set {
		key += "," + strconv.Itoa(int(i))
	}
	if n, ok := d.number[key]; ok {
		return n
	}
	n := d.out.add(d.p, d.what)
	d.number[key] = n
	d.order = append(d.order, set)
	return n
}

// closure follows the steps that take no character. It returns the
// instructions that take one, and whether the expression has matched.
func (d *determiner) closure(set []uint32, at syntax.EmptyOp) (takers []uint32, match bool) {
	seen := map[uint32]bool{}
	stack := slices.Clone(set)
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		d.p.spend(1)
		switch in := d.prog.Inst[i]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, in.Out)
		case syntax.InstEmptyWidth:
			need := syntax.EmptyOp(in.Arg)
			if need&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
				failf("%s cannot be used: of what stands between characters only ^ and $ are supported", d.what)
			}
			if need&^at == 0 {
				stack = append(stack, in.Out)
			}
		case syntax.InstMatch:
			match = true
		case syntax.InstFail:
		default:
			takers = append(takers, i)
		}
	}
	slices.Sort(takers)
	return takers, match
}

// expand finds where the characters lead from set number i.
func (d *determiner) expand(i int) {
	at := syntax.EmptyOp(0)
	if i == 0 {
		at = syntax.EmptyBeginText
	}
	_, d.out.states[i].final = d.closure(d.order[i], at|syntax.EmptyEndText)
	takers, _ := d.closure(d.order[i], at)
	cuts := []rune{0, unicode.MaxRune + 1}
	for _, t := range takers {
		for _, r := range d.ranges(t) {
			cuts = append(cuts, r[0], r[1]+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var edges []langEdge
	for k := 0; k+1 < len(cuts); k++ {
		lo, hi := cuts[k], cuts[k+1]-1
		var next []uint32
		for _, t := range takers {
			if d.prog.Inst[t].MatchRune(lo) {
				next = append(next, d.prog.Inst[t].Out)
			}
		}
		if len(next) == 0 {
			continue
		}
		slices.Sort(next)
		to := d.visit(slices.Compact(next), false)
		if n := len(edges); n > 0 && edges[n-1].to == to && edges[n-1].hi+1 == lo {
			edges[n-1].hi = hi
		} else {
			edges = append(edges, langEdge{lo, hi, to})
		}
	}
	d.p.spend(len(edges))
	d.out.states[i].edges = edges
}

// ranges are the characters at which an instruction's answer may change.
func (d *determiner) ranges(t uint32) [][2]rune {
	in := d.prog.Inst[t]
	var out [][2]rune
	switch {
	case in.Op == syntax.InstRuneAny:
	case in.Op == syntax.InstRuneAnyNotNL:
		out = append(out, [2]rune{'\n', '\n'})
	case len(in.Rune) == 1:
		all := folds(in.Rune[0], true)
		for i := 0; i < len(all); i += 2 {
			out = append(out, [2]rune{all[i], all[i+1]})
		}
	default:
		for i := 0; i+1 < len(in.Rune); i += 2 {
			out = append(out, [2]rune{in.Rune[i], in.Rune[i+1]})
		}
	}
	return out
}

// quoted is a JSON string whose text is of the language. A text that no JSON
// string can have as it is, such as a control character, is left out.
func (l *language) quoted(p *program) expr {
	n := p.newRule()
	p.rules[n] = seqExpr{bytesExpr(`"`), l.graph(p, jsonChar), bytesExpr(`"`)}
	return ruleExpr(n)
}

// graph is the language's texts, with each character as char writes it.
func (l *language) graph(p *program, char func(ranges []rune) expr) graphExpr {
	useful := l.useful()
	g := graphExpr{}
	for i, s := range l.states {
		node := graphNode{final: s.final}
		for j := 0; j < len(s.edges) && useful[i]; j++ {
			to := s.edges[j].to
			if !useful[to] || slices.ContainsFunc(s.edges[:j], func(e langEdge) bool { return e.to == to }) {
				continue
			}
			var ranges []rune
			for _, e := range s.edges[j:] {
				if e.to == to {
					ranges = append(ranges, e.lo, e.hi)
				}
			}
			p.spend(len(ranges))
			node.edges = append(node.edges, graphEdge{char(ranges), to})
		}
		g = append(g, node)
	}
	return g
}

// useful reports from which states the language's end can be reached.
func (l *language) useful() []bool {
	back := make([][]int, len(l.states))
	var stack []int
	out := make([]bool, len(l.states))
	for i, s := range l.states {
		for _, e := range s.edges {
			back[e.to] = append(back[e.to], i)
		}
		if s.final {
			out[i] = true
			stack = append(stack, i)
		}
	}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, j := range back[i] {
			if !out[j] {
				out[j] = true
				stack = append(stack, j)
			}
		}
	}
	return out
}
