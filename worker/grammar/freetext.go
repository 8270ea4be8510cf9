package grammar

import (
	"slices"
	"unicode"
)

// trigger is a text after which an output must go on in a given form.
type trigger struct {
	text string
	then expr
}

// freeText is any text without those that are excluded, in which each trigger
// is followed by what it asks for: again and again, or with once up to the
// first. An exclusion that ends where a trigger does wins.
func freeText(p *program, triggers []trigger, excludes []string, once bool) expr {
	n := p.newRule()
	l, fires := watched(p, triggers, excludes)
	g := l.graph(p, runeRanges)
	end := len(g)
	g = append(g, graphNode{final: true})
	for _, f := range fires {
		to := 0
		if once {
			to = end
		}
		x := seqExpr{runeRanges([]rune{f.r, f.r}), triggers[f.trigger].then}
		g[f.from].edges = append(g[f.from].edges, graphEdge{x, to})
	}
	p.rules[n] = g
	return ruleExpr(n)
}

// firing is the character with which a trigger is complete.
type firing struct {
	from    int
	r       rune
	trigger int
}

// watched is the texts without triggers and exclusions, by the automaton of
// Aho and Corasick, and where its states complete a trigger.
func watched(p *program, triggers []trigger, excludes []string) (*language, []firing) {
	w := &watcher{p: p}
	w.add("", -1)
	for i, t := range triggers {
		w.add(t.text, i)
	}
	for _, x := range excludes {
		w.add(x, excluded)
	}
	w.link()
	alphabet := w.alphabet()
	l := &language{}
	var fires []firing
	for i := range w.nodes {
		l.add(p, "the free text of a structural tag")
		if w.nodes[i].says != nothing {
			continue
		}
		l.states[i].final = true
		at := rune(0)
		for _, r := range alphabet {
			if r > at {
				l.states[i].edges = append(l.states[i].edges, langEdge{at, r - 1, 0})
			}
			at = r + 1
			to := w.step(i, r)
			switch says := w.nodes[to].says; says {
			case nothing:
				l.states[i].edges = append(l.states[i].edges, langEdge{r, r, to})
			case excluded:
			default:
				fires = append(fires, firing{i, r, says})
			}
		}
		if at <= unicode.MaxRune {
			l.states[i].edges = append(l.states[i].edges, langEdge{at, unicode.MaxRune, 0})
		}
		p.spend(len(alphabet))
	}
	return l, fires
}

// watcher is a trie of texts to look out for.
type watcher struct {
	p     *program
	nodes []watchNode
}

type watchNode struct {
	next map[rune]int
	fail int // the longest other node whose text this one ends with
	says int // a trigger's number, or nothing or excluded
}

const (
	nothing  = -1
	excluded = -2
)

func (w *watcher) add(text string, says int) {
	if len(w.nodes) == 0 {
		w.nodes = append(w.nodes, watchNode{next: map[rune]int{}, says: nothing})
	}
	at := 0
	for _, r := range text {
		to, ok := w.nodes[at].next[r]
		if !ok {
			w.p.spend(1)
			to = len(w.nodes)
			w.nodes = append(w.nodes, watchNode{next: map[rune]int{}, says: nothing})
			w.nodes[at].next[r] = to
		}
		at = to
	}
	if says == excluded || w.nodes[at].says == nothing {
		w.nodes[at].says = says
	}
}

// link finds where each node goes on where no text of its own does, the
// shorter texts first.
func (w *watcher) link() {
	order := []int{0}
	for i := 0; i < len(order); i++ {
		n := order[i]
		for _, r := range sorted(w.nodes[n].next) {
			child := w.nodes[n].next[r]
			if n != 0 {
				w.nodes[child].fail = w.step(w.nodes[n].fail, r)
			}
			if says := w.nodes[w.nodes[child].fail].says; says == excluded || w.nodes[child].says == nothing {
				w.nodes[child].says = says
			}
			order = append(order, child)
		}
	}
}

// step returns where a character leads from a node.
func (w *watcher) step(n int, r rune) int {
	for {
		if to, ok := w.nodes[n].next[r]; ok {
			return to
		}
		if n == 0 {
			return 0
		}
		n = w.nodes[n].fail
	}
}

func (w *watcher) alphabet() []rune {
	all := map[rune]int{}
	for _, n := range w.nodes {
		for r := range n.next {
			all[r] = 0
		}
	}
	return sorted(all)
}

func sorted(m map[rune]int) []rune {
	var out []rune
	for r := range m {
		out = append(out, r)
	}
	slices.Sort(out)
	return out
}
