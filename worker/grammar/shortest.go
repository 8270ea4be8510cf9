package grammar

import (
	"container/heap"
	"math"
)

// shortest knows, for each state, the fewest bytes that end its rule, and the
// way there.
type shortest struct {
	cost []int32 // by state; never: the rule cannot end from here
	rule []int32 // by rule
}

const never = math.MaxInt32 / 4

// newShortest finds the costs, the cheapest state first (Dijkstra from the
// ends backwards; a call costs what its rule costs, known when the rule's
// start is).
func newShortest(a *automaton) *shortest {
	s := &shortest{cost: make([]int32, len(a.states)), rule: make([]int32, len(a.starts))}
	for i := range s.cost {
		s.cost[i] = never
	}
	for i := range s.rule {
		s.rule[i] = never
	}
	before := make([][]int32, len(a.states)) // who goes on here
	callers := make([][]int32, len(a.starts))
	begins := map[int32][]int32{}
	q := &costHeap{}
	for i, st := range a.states {
		switch st.kind {
		case kindEnd:
			heap.Push(q, costItem{int32(i), 0})
			continue
		case kindFork:
			before[st.or] = append(before[st.or], int32(i))
		case kindCall:
			callers[st.rule] = append(callers[st.rule], int32(i))
		}
		before[st.to] = append(before[st.to], int32(i))
	}
	for r, at := range a.starts {
		begins[at] = append(begins[at], int32(r))
	}
	for q.Len() > 0 {
		it := heap.Pop(q).(costItem)
		if s.cost[it.state] <= it.cost {
			continue
		}
		s.cost[it.state] = it.cost
		for _, b := range before[it.state] {
			if c := s.through(a, b); c < s.cost[b] {
				heap.Push(q, costItem{b, c})
			}
		}
		for _, r := range begins[it.state] {
			s.rule[r] = it.cost
			for _, b := range callers[r] {
				if c := s.through(a, b); c < s.cost[b] {
					heap.Push(q, costItem{b, c})
				}
			}
		}
	}
	return s
}

// through returns what a state costs by what is known of the states behind.
func (s *shortest) through(a *automaton, at int32) int32 {
	st := &a.states[at]
	switch st.kind {
	case kindEnd:
		return 0
	case kindByte:
		if *st.set == (byteSet{}) {
			return never
		}
		return min(s.cost[st.to]+1, never)
	case kindCall:
		return min(s.rule[st.rule]+s.cost[st.to], never)
	}
	return min(s.cost[st.to], s.cost[st.or])
}

// branch returns the way of a fork that is shorter. Of equals it is the one
// that leaves a loop.
func (s *shortest) branch(st *state) int32 {
	if s.cost[st.or] <= s.cost[st.to] {
		return st.or
	}
	return st.to
}

// depths returns, for each state, how many calls deep the shortest way to the
// end of its rule goes.
func (s *shortest) depths(a *automaton) []int32 {
	need := make([]int32, len(a.states))
	for i := range need {
		need[i] = -1
	}
	var depth func(at int32) int32
	depth = func(at int32) int32 {
		if need[at] >= 0 {
			return need[at]
		}
		st := &a.states[at]
		n := int32(0)
		switch {
		case s.cost[at] >= never || st.kind == kindEnd:
		case st.kind == kindByte:
			n = depth(st.to)
		case st.kind == kindCall:
			n = max(1+depth(a.starts[st.rule]), depth(st.to))
		default:
			n = depth(s.branch(st))
		}
		need[at] = n
		return n
	}
	for i := range need {
		depth(int32(i))
	}
	return need
}

// appendText appends the bytes of a shortest way from a state to its rule's
// end.
func (s *shortest) appendText(a *automaton, text []byte, at int32) []byte {
	for {
		st := &a.states[at]
		switch st.kind {
		case kindEnd:
			return text
		case kindByte:
			text = append(text, st.set.pick())
			at = st.to
		case kindCall:
			text = s.appendText(a, text, a.starts[st.rule])
			at = st.to
		case kindFork:
			at = s.branch(st)
		}
	}
}

// pick returns a byte of the set, a printable one if there is one.
func (s *byteSet) pick() byte {
	for _, from := range []int{'0', 'a', 'A', ' ', 0} {
		for c := from; c < 256; c++ {
			if s.has(byte(c)) && (from == 0 || c < 0x7F) {
				return byte(c)
			}
		}
	}
	panic("BUG: an empty set is on a shortest way")
}

type costItem struct{ state, cost int32 }

type costHeap []costItem

func (h costHeap) Len() int           { return len(h) }
func (h costHeap) Less(i, j int) bool { return h[i].cost < h[j].cost }
func (h costHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *costHeap) Push(x any)        { *h = append(*h, x.(costItem)) }
func (h *costHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
