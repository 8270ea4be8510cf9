package grammar

import (
	"fmt"
	"slices"
)

// automaton is all rules as one graph of states. A state consumes a byte, or
// calls a rule and goes on behind it, or forks, or ends its rule.
type automaton struct {
	states  []state
	starts  []int32 // by rule
	class   [256]uint8
	classes int

	// twins are states of counted rounds that have, but for the count, an
	// equal among the states of a round without one.
	twins map[int32]twin
}

// twin says that a state and another take the same tokens of up to left
// bytes.
type twin struct{ state, left int32 }

type state struct {
	kind stateKind
	set  *byteSet // of kindByte
	rule int32    // of kindCall
	to   int32    // after the byte or the call; of kindFork: one way
	or   int32    // of kindFork: the other way
}

type stateKind uint8

const (
	kindEnd stateKind = iota
	kindByte
	kindCall
	kindFork
)

// maxStates bounds the states of an automaton.
const maxStates = 400_000

// newAutomaton builds the graph of a program.
func newAutomaton(p *program) *automaton {
	a := &automaton{starts: make([]int32, len(p.rules)), twins: map[int32]twin{}}
	for i, body := range p.rules {
		end := a.add(state{kind: kindEnd})
		a.starts[i] = a.build(body, end)
	}
	a.classify()
	return a
}

func (a *automaton) add(s state) int32 {
	if len(a.states) >= maxStates {
		panic(specError{&LimitError{fmt.Sprintf("more than %d states", maxStates)}})
	}
	a.states = append(a.states, s)
	return int32(len(a.states) - 1)
}

// build adds what matches x and then goes on at next; it returns where that
// begins.
func (a *automaton) build(x expr, next int32) int32 {
	switch x := x.(type) {
	case bytesExpr:
		for i := len(x) - 1; i >= 0; i-- {
			next = a.add(state{kind: kindByte, set: byteRange(x[i], x[i]), to: next})
		}
		return next
	case setExpr:
		return a.add(state{kind: kindByte, set: x, to: next})
	case seqExpr:
		for i := len(x) - 1; i >= 0; i-- {
			next = a.build(x[i], next)
		}
		return next
	case altExpr:
		if len(x) == 0 {
			return a.add(state{kind: kindByte, set: &byteSet{}, to: next})
		}
		at := a.build(x[len(x)-1], next)
		for i := len(x) - 2; i >= 0; i-- {
			at = a.add(state{kind: kindFork, to: a.build(x[i], next), or: at})
		}
		return at
	case repExpr:
		return a.repeat(x, next)
	case graphExpr:
		return a.graph(x, next)
	case ruleExpr:
		return a.add(state{kind: kindCall, rule: int32(x), to: next})
	}
	panic(fmt.Sprintf("BUG: expression of type %T", x))
}

// graph builds a graph: a fork for each node, or a chain of them where more
// than two ways go on.
func (a *automaton) graph(g graphExpr, next int32) int32 {
	entries := make([]int32, len(g))
	for i := range g {
		entries[i] = a.add(state{kind: kindFork})
	}
	for i, node := range g {
		var ways []int32
		if node.final {
			ways = append(ways, next)
		}
		for _, e := range node.edges {
			ways = append(ways, a.build(e.x, entries[e.to]))
		}
		if len(ways) == 0 {
			ways = append(ways, a.build(altExpr{}, next))
		}
		at := ways[len(ways)-1]
		for _, w := range slices.Backward(ways[1:max(len(ways)-1, 1)]) {
			at = a.add(state{kind: kindFork, to: w, or: at})
		}
		a.states[entries[i]].to, a.states[entries[i]].or = ways[0], at
	}
	return entries[0]
}

// manyRounds is the count from which the rounds of a repetition get twins.
const manyRounds = 8

// repeat builds x{min,max}. Optional rounds each may leave for the end, so
// that no state has a long way to it.
func (a *automaton) repeat(r repExpr, next int32) int32 {
	if r.max < 0 {
		next = a.loop(r.x, next)
	} else {
		end := next
		first := int32(-1) // the states of one round without a count
		if r.max-r.min >= manyRounds {
			first = a.loop(r.x, next) + 1
		}
		for left := range r.max - r.min {
			from := int32(len(a.states))
			next = a.add(state{kind: kindFork, to: a.build(r.x, next), or: end})
			if first >= 0 {
				a.pair(from, next, first, int32(left))
			}
		}
	}
	for range r.min {
		next = a.build(r.x, next)
	}
	return next
}

// loop builds x* and returns its fork, which the states of x follow.
func (a *automaton) loop(x expr, next int32) int32 {
	fork := a.add(state{kind: kindFork, or: next})
	a.states[fork].to = a.build(x, fork)
	return fork
}

// pair notes the twins of the states from from to to, of a round that left
// more may follow. Every round takes a byte, so that left bytes are left
// rounds at most.
func (a *automaton) pair(from, to, first, left int32) {
	for at := from; at < to; at++ {
		if a.states[at].kind == kindByte {
			a.twins[at] = twin{first + at - from, left}
		}
	}
}

// classify groups the bytes that no state tells apart.
func (a *automaton) classify() {
	group := [256]int{}
	count := 1
	seen := map[byteSet]bool{}
	for _, s := range a.states {
		if s.kind != kindByte || seen[*s.set] {
			continue
		}
		seen[*s.set] = true
		split := map[[2]int]int{}
		next := 0
		for c := range group {
			in := 0
			if s.set.has(byte(c)) {
				in = 1
			}
			key := [2]int{group[c], in}
			id, ok := split[key]
			if !ok {
				id = next
				next++
				split[key] = id
			}
			group[c] = id
		}
		count = next
	}
	a.classes = count
	for c := range group {
		a.class[c] = uint8(group[c])
	}
}
