package grammar

import (
	"encoding/binary"
)

// local is what a mask has from one state, whatever the stack: the tokens
// that stay within the state's rule or end with it.
type local struct {
	dense  []uint32 // a bit for each token, or
	sparse []int32  // the tokens, where they are few
	exits  []int32  // nodes of the trie at which the rule may end and tokens go on
	worst  int32    // bytes to the rule's end after a token, at most
}

// denseFrom is the number of tokens from which a local is kept as bits.
const denseFrom = 512

// masker finds masks. It belongs to a Grammar, whose lock guards it.
type masker struct {
	*machine
	v      *Vocab
	locals map[int32]*local // by state
	walked int              // nodes of the trie visited so far
	stack  []*place         // of walk, by depth
}

func newMasker(m *machine, v *Vocab) *masker {
	return &masker{machine: m, v: v, locals: map[int32]*local{}, stack: make([]*place, v.deep+1)}
}

// walk visits the nodes of the trie from node from up to node to that can be
// reached from a place, which is the one before node from. visit is called
// with each of them.
func (m *masker) walk(p *place, from, to int32, visit func(node int32, p *place)) {
	if from >= to {
		return
	}
	v := m.v
	m.stack[v.depth[from]-1] = p
	for n := from; n < to; {
		m.walked++
		d := v.depth[n]
		q := m.step(m.stack[d-1], v.char[n])
		if q == m.dead {
			n = v.skip[n]
			continue
		}
		m.stack[d] = q
		visit(n, q)
		n++
	}
}

// local returns the local mask of a state.
func (m *masker) local(state int32) *local {
	if l := m.locals[state]; l != nil {
		return l
	}
	key := m.signature(state)
	if key != "" {
		m.v.mu.Lock()
		l := m.v.shared[key]
		m.v.mu.Unlock()
		if l != nil {
			m.locals[state] = l
			return l
		}
	}
	m.follow(state, nil)
	l := m.findLocal(m.gathered())
	m.locals[state] = l
	if key != "" {
		m.v.mu.Lock()
		if len(m.v.shared) < maxShared {
			m.v.shared[key] = l
		}
		m.v.mu.Unlock()
	}
	return l
}

// maxShared bounds the local masks that grammars share: 20 MiB at a
// vocabulary of 152 000.
const maxShared = 1024

func (m *masker) findLocal(p *place) *local {
	l := &local{}
	m.walk(p, 0, int32(len(m.v.char)), func(n int32, q *place) {
		if list := m.v.list[m.v.first[n]:m.v.first[n+1]]; len(list) > 0 {
			l.sparse = append(l.sparse, list...)
			l.worst = max(l.worst, q.cost)
		}
		if q.accept && m.v.skip[n] > n+1 {
			l.exits = append(l.exits, n)
		}
	})
	if len(l.sparse) >= denseFrom {
		l.dense = make([]uint32, m.v.Words())
		for _, t := range l.sparse {
			l.dense[t>>5] |= 1 << (t & 31)
		}
		l.sparse = nil
	}
	return l
}

// addTo puts the tokens into a mask.
func (l *local) addTo(mask []uint32) {
	for i, w := range l.dense {
		mask[i] |= w
	}
	for _, t := range l.sparse {
		mask[t>>5] |= 1 << (t & 31)
	}
}

// maxSignature is the number of states up to which an automaton without
// calls is recognised in other grammars.
const maxSignature = 64

// signature returns what two states have in common whose local masks are
// equal: the graph of states from there on. It is "" for large graphs and
// those with calls.
func (m *masker) signature(state int32) string {
	number := map[int32]int{state: 0}
	order := []int32{state}
	visit := func(to int32) uint32 {
		n, ok := number[to]
		if !ok {
			n = len(order)
			number[to] = n
			order = append(order, to)
		}
		return uint32(n)
	}
	var key []byte
	for i := 0; i < len(order); i++ {
		st := &m.a.states[order[i]]
		if st.kind == kindCall || len(order) > maxSignature {
			return ""
		}
		key = append(key, byte(st.kind))
		switch st.kind {
		case kindByte:
			for _, w := range st.set {
				key = binary.LittleEndian.AppendUint64(key, w)
			}
			key = binary.LittleEndian.AppendUint32(key, visit(st.to))
		case kindFork:
			key = binary.LittleEndian.AppendUint32(key, visit(st.to))
			key = binary.LittleEndian.AppendUint32(key, visit(st.or))
		}
	}
	return string(key)
}

// complete finds the part of a place's mask that depends on the stacks.
func (m *masker) complete(p *place) {
	if p.known {
		return
	}
	p.known = true
	for _, c := range p.configs {
		l := m.local(c.state)
		up := int32(0)
		if c.stack != nil {
			up = c.stack.cost
		}
		p.worst = max(p.worst, min(l.worst+up, never))
		if c.stack == nil {
			continue
		}
		for _, n := range l.exits {
			m.walk(m.returned(c.stack), n+1, m.v.skip[n], func(n int32, q *place) {
				if list := m.v.list[m.v.first[n]:m.v.first[n+1]]; len(list) > 0 {
					p.extra = append(p.extra, list...)
					p.worst = max(p.worst, q.cost)
				}
			})
		}
	}
}

// fill writes the mask of a place for remaining tokens into mask, which is
// empty.
func (m *masker) fill(mask []uint32, p *place, remaining int32) {
	m.complete(p)
	if p.worst <= remaining-1 {
		for _, c := range p.configs {
			m.local(c.state).addTo(mask)
		}
		for _, t := range p.extra {
			mask[t>>5] |= 1 << (t & 31)
		}
		return
	}
	fits := func(n int32, q *place) {
		list := m.v.list[m.v.first[n]:m.v.first[n+1]]
		if len(list) == 0 || q.cost > remaining-1 && m.tokensOf(q) > remaining-1 {
			return
		}
		for _, t := range list {
			mask[t>>5] |= 1 << (t & 31)
		}
	}
	for _, c := range p.configs {
		l := m.local(c.state)
		if l.worst+m.planOf(c.stack) > remaining-1 {
			// Some token of the rule itself would ask for too much.
			m.follow(c.state, c.stack)
			m.walk(m.gathered(), 0, int32(len(m.v.char)), fits)
			continue
		}
		l.addTo(mask)
		if c.stack == nil {
			continue
		}
		for _, n := range l.exits {
			m.walk(m.returned(c.stack), n+1, m.v.skip[n], fits)
		}
	}
}

// planOf returns the tokens of a stack's shortest completion.
func (m *masker) planOf(f *frame) int32 {
	if f == nil {
		return 0
	}
	if f.plan < 0 {
		f.plan = m.v.plan(m.textOf(config{f.to, f.up}))[0]
	}
	return f.plan
}

// planFor returns the completion of a place that takes the fewest tokens, of
// those that are the shortest of some config.
func (m *masker) planFor(p *place) *plan {
	if p.plan != nil {
		return p.plan
	}
	best := &plan{tokens: []int32{0}}
	if !p.accept {
		best = &plan{tokens: []int32{never}}
		for _, c := range p.configs {
			text := m.textOf(c)
			if n := m.v.plan(text); n[0] < best.tokens[0] {
				best = &plan{text, n}
			}
		}
	}
	p.plan = best
	return best
}

func (m *masker) tokensOf(p *place) int32 { return m.planFor(p).tokens[0] }
