package grammar

// masker finds masks. It belongs to a Grammar, whose lock guards it.
type masker struct {
	*machine
	v      *Vocab
	locals map[int32]*local // by state
	bytes  int              // bytes that they take
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

// walkTall is walk through the whole trie but for the subtrees that have no
// token of more than longer bytes.
func (m *masker) walkTall(p *place, longer int32, visit func(node int32, p *place)) {
	v := m.v
	m.stack[0] = p
	for n := int32(0); int(n) < len(v.char); {
		if v.tall[n] <= longer {
			n = v.skip[n]
			continue
		}
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
		plan := m.planOf(c.stack)
		if l.worst+plan > remaining-1 && !l.dense() {
			// Some token of the rule itself may ask for too much.
			m.follow(c.state, c.stack)
			m.walk(m.gathered(), 0, int32(len(m.v.char)), fits)
			continue
		}
		for i := range l.layers {
			if l.layers[i].cost+plan <= remaining-1 {
				l.layers[i].addTo(mask)
			}
		}
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

// mostCompared is how many bytes of completions are compared for the fewest tokens. A
// place of 20,000 alternatives before a long common end would take minutes otherwise;
// any completion is one to end by.
const mostCompared = 1 << 20

// planFor returns the completion of a place that takes the fewest tokens, of
// those that are the shortest of some config, as far as they are compared.
func (m *masker) planFor(p *place) *plan {
	if p.plan != nil {
		return p.plan
	}
	best := &plan{tokens: []int32{0}}
	if !p.accept {
		best = &plan{tokens: []int32{never}}
		compared := 0
		for _, c := range p.configs {
			text := m.textOf(c)
			if compared += len(text); compared > mostCompared && best.tokens[0] < never {
				break
			}
			if n := m.v.plan(text); n[0] < best.tokens[0] {
				best = &plan{text, n}
			}
		}
	}
	p.plan = best
	return best
}

func (m *masker) tokensOf(p *place) int32 { return m.planFor(p).tokens[0] }
