package grammar

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
)

// local is what a mask has from one state, whatever the stack: the tokens
// that stay within the state's rule or end with it.
type local struct {
	layers []layer // by what they cost, the cheapest first
	exits  []int32 // nodes of the trie at which the rule may end and tokens go on
	worst  int32   // the cost of the last layer
}

// layer is tokens after which the rule's end is at most cost bytes away.
type layer struct {
	cost   int32
	dense  []uint32 // a bit for each token, or
	sparse []int32  // the tokens, where they are few
}

const (
	denseFrom = 512 // tokens from which a layer is kept as bits
	maxLayers = 12  // costs told apart; what costs more shares the last
	maxShared = 1024
	maxBytes  = 64 << 20 // bytes of masks that a grammar keeps
	// maxSignature is the number of states up to which an automaton without
	// calls is recognised in other grammars.
	maxSignature = 256
)

// addTo puts the tokens into a mask.
func (l *layer) addTo(mask []uint32) {
	for i, w := range l.dense {
		mask[i] |= w
	}
	for _, t := range l.sparse {
		mask[t>>5] |= 1 << (t & 31)
	}
}

func (l *local) addTo(mask []uint32) {
	for i := range l.layers {
		l.layers[i].addTo(mask)
	}
}

// size returns about how many bytes a local takes.
func (l *local) size() int {
	n := 4 * len(l.exits)
	for _, y := range l.layers {
		n += 4 * (len(y.dense) + len(y.sparse))
	}
	return n
}

// dense reports whether a walk for this mask is long.
func (l *local) dense() bool {
	return slices.ContainsFunc(l.layers, func(y layer) bool { return y.dense != nil })
}

// local returns the local mask of a state.
func (m *masker) local(state int32) *local {
	if l := m.locals[state]; l != nil {
		return l
	}
	key, shareable := [32]byte{}, false
	tw, counted := m.a.twins[state]
	if counted && int(tw.left) >= m.v.deep && m.short.cost[tw.state] < never {
		return m.local(tw.state) // no token reaches the count's end
	}
	if !counted { // else large, and quick to find
		key, shareable = m.signature(state)
	}
	if shareable {
		m.v.mu.Lock()
		l := m.v.shared[key]
		m.v.mu.Unlock()
		if l != nil {
			m.locals[state] = l
			return l
		}
	}
	l := m.findLocal(state)
	if m.bytes += l.size(); m.bytes > maxBytes {
		clear(m.locals)
		m.bytes = l.size()
	}
	m.locals[state] = l
	if shareable {
		m.v.mu.Lock()
		if len(m.v.shared) < maxShared {
			m.v.shared[key] = l
		}
		m.v.mu.Unlock()
	}
	return l
}

// findLocal walks the trie. A state with a twin takes from it what both have,
// and walks to the longer tokens only.
func (m *masker) findLocal(state int32) *local {
	found := map[int32]*layer{} // by cost
	at := func(cost int32) *layer {
		if found[cost] == nil {
			found[cost] = &layer{cost: cost}
		}
		return found[cost]
	}
	l := &local{}
	longer := int32(0)
	if tw, ok := m.a.twins[state]; ok && tw.left > 0 && m.short.cost[tw.state] < never {
		longer = tw.left
		m.copyShort(m.local(tw.state), l, longer, at)
	}
	m.follow(state, nil)
	m.walkTall(m.gathered(), longer, func(n int32, q *place) {
		if m.v.depth[n] <= longer {
			return
		}
		if list := m.v.list[m.v.first[n]:m.v.first[n+1]]; len(list) > 0 {
			y := at(q.cost)
			y.sparse = append(y.sparse, list...)
		}
		if q.accept && m.v.skip[n] > n+1 {
			l.exits = append(l.exits, n)
		}
	})
	l.setLayers(found, m.v)
	return l
}

// setLayers orders the layers and keeps the large ones as bits.
func (l *local) setLayers(found map[int32]*layer, v *Vocab) {
	costs := slices.Sorted(maps.Keys(found))
	for i, c := range costs {
		y := found[c]
		if i >= maxLayers {
			last := &l.layers[maxLayers-1]
			last.cost = c
			last.sparse = append(last.sparse, y.sparse...)
			last.join(y.dense)
			continue
		}
		l.layers = append(l.layers, *y)
	}
	for i := range l.layers {
		l.layers[i].pack(v)
	}
	if len(costs) > 0 {
		l.worst = costs[len(costs)-1]
	}
}

// join adds tokens that are kept as bits.
func (l *layer) join(dense []uint32) {
	if l.dense == nil {
		l.dense = slices.Clone(dense)
		return
	}
	for i, w := range dense {
		l.dense[i] |= w
	}
}

// pack keeps many tokens as bits.
func (l *layer) pack(v *Vocab) {
	if len(l.sparse) < denseFrom && l.dense == nil {
		return
	}
	if l.dense == nil {
		l.dense = make([]uint32, v.Words())
	}
	for _, t := range l.sparse {
		l.dense[t>>5] |= 1 << (t & 31)
	}
	l.sparse = nil
}

// copyShort takes the tokens of up to most bytes from a local mask.
func (m *masker) copyShort(from, to *local, most int32, at func(cost int32) *layer) {
	short := m.v.shorter(most)
	for _, y := range from.layers {
		out := at(y.cost)
		for _, t := range y.sparse {
			if short[t>>5]&(1<<(t&31)) != 0 {
				out.sparse = append(out.sparse, t)
			}
		}
		if y.dense != nil {
			dense := make([]uint32, len(short))
			for i, w := range y.dense {
				dense[i] = w & short[i]
			}
			out.join(dense)
		}
	}
	for _, n := range from.exits {
		if m.v.depth[n] <= most {
			to.exits = append(to.exits, n)
		}
	}
}

// signature returns what two states have in common whose local masks are
// equal: the graph of states from there on. There is none for large graphs
// and those with calls.
func (m *masker) signature(state int32) (key [32]byte, ok bool) {
	number := map[int32]uint32{state: 0}
	order := []int32{state}
	visit := func(to int32) uint32 {
		n, ok := number[to]
		if !ok {
			n = uint32(len(order))
			number[to] = n
			order = append(order, to)
		}
		return n
	}
	var graph []byte
	for i := 0; i < len(order); i++ {
		st := &m.a.states[order[i]]
		if st.kind == kindCall || len(order) > maxSignature {
			return key, false
		}
		graph = append(graph, byte(st.kind))
		switch st.kind {
		case kindByte:
			for _, w := range st.set {
				graph = binary.LittleEndian.AppendUint64(graph, w)
			}
			graph = binary.LittleEndian.AppendUint32(graph, visit(st.to))
		case kindFork:
			graph = binary.LittleEndian.AppendUint32(graph, visit(st.to))
			graph = binary.LittleEndian.AppendUint32(graph, visit(st.or))
		}
	}
	return sha256.Sum256(graph), true
}
