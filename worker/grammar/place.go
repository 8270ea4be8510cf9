package grammar

import (
	"encoding/binary"
	"slices"
)

// frame is a stack of states to return to when a rule ends. Equal stacks are
// one frame, so that places can be told apart by pointers.
type frame struct {
	id    uint32
	to    int32
	up    *frame
	depth int32
	cost  int32  // bytes of the shortest completion from here
	plan  int32  // tokens of it, -1: not known yet
	back  *place // where a text is when the rule above has ended; nil: not known yet
}

// config is one way in which a text may be read so far.
type config struct {
	state int32
	stack *frame // nil: the rule's end is the text's end
}

// place is where a text is: all ways to read it. Equal places are one.
type place struct {
	configs []config
	accept  bool     // the text may end here
	cost    int32    // bytes of the shortest completion
	next    []*place // by class of the byte; nil: not known yet
	plan    *plan    // nil: not known yet

	// What a mask has besides the local masks of the configs.
	known bool
	extra []int32 // tokens that leave a config's rule
	worst int32   // no allowed token makes the shortest completion longer, in bytes
}

// plan is a completion in as few tokens as are known to do.
type plan struct {
	text   []byte
	tokens []int32 // how many it takes from each byte on
}

type frameKey struct {
	up *frame
	to int32
}

// maxFrames bounds how deep rules call each other: 512 levels of JSON.
const maxFrames = 1024

// maxPlaces bounds the places remembered. Beyond it they are forgotten, and
// found anew as they are met.
const maxPlaces = 20_000

// machine finds places. It belongs to a Grammar, whose lock guards it.
type machine struct {
	a      *automaton
	short  *shortest
	need   []int32 // by state: calls on the shortest way
	frames map[frameKey]*frame
	places map[string]*place
	dead   *place
	serial uint32

	gather  []config // of the place being made
	seen    map[config]bool
	accepts bool
	key     []byte
}

func newMachine(a *automaton, s *shortest) *machine {
	m := &machine{a: a, short: s, need: s.depths(a), seen: map[config]bool{}, dead: &place{cost: never}}
	m.forget()
	return m
}

func (m *machine) forget() {
	m.frames = map[frameKey]*frame{}
	m.places = map[string]*place{}
}

// push returns the stack with a state on it.
func (m *machine) push(up *frame, to int32) *frame {
	k := frameKey{up, to}
	if f := m.frames[k]; f != nil {
		return f
	}
	m.serial++
	f := &frame{id: m.serial, to: to, up: up, depth: 1, cost: m.short.cost[to], plan: -1}
	if up != nil {
		f.depth = up.depth + 1
		f.cost = min(f.cost+up.cost, never)
	}
	m.frames[k] = f
	return f
}

// follow adds the configs that are reached from a state without a byte.
func (m *machine) follow(at int32, stack *frame) {
	c := config{at, stack}
	if m.seen[c] || m.short.cost[at] >= never {
		return
	}
	m.seen[c] = true
	st := &m.a.states[at]
	switch st.kind {
	case kindByte:
		depth := m.need[at]
		if stack != nil {
			depth += stack.depth
		}
		if depth <= maxFrames {
			m.gather = append(m.gather, c)
		}
	case kindFork:
		m.follow(st.to, stack)
		m.follow(st.or, stack)
	case kindCall:
		if m.a.states[st.to].kind != kindEnd {
			if stack != nil && stack.depth >= maxFrames {
				return
			}
			stack = m.push(stack, st.to)
		}
		m.follow(m.a.starts[st.rule], stack)
	case kindEnd:
		if stack == nil {
			m.accepts = true
			return
		}
		m.follow(stack.to, stack.up)
	}
}

// gathered returns the place of the configs that follow added.
func (m *machine) gathered() *place {
	configs, accept := m.gather, m.accepts
	m.gather, m.accepts = nil, false
	clear(m.seen)
	if len(configs) == 0 && !accept {
		return m.dead
	}
	id := func(f *frame) uint32 {
		if f == nil {
			return 0
		}
		return f.id
	}
	slices.SortFunc(configs, func(a, b config) int {
		if a.state != b.state {
			return int(a.state) - int(b.state)
		}
		return int(int64(id(a.stack)) - int64(id(b.stack)))
	})
	m.key = m.key[:0]
	if accept {
		m.key = append(m.key, 1)
	}
	for _, c := range configs {
		m.key = binary.LittleEndian.AppendUint32(m.key, uint32(c.state))
		m.key = binary.LittleEndian.AppendUint32(m.key, id(c.stack))
	}
	if p := m.places[string(m.key)]; p != nil {
		return p
	}
	if len(m.places) >= maxPlaces {
		m.forget()
	}
	p := &place{configs: configs, accept: accept, next: make([]*place, m.a.classes), cost: never}
	for _, c := range configs {
		p.cost = min(p.cost, m.costOf(c))
	}
	if accept {
		p.cost = 0
	}
	m.places[string(m.key)] = p
	return p
}

// costOf returns the bytes of the shortest completion of a config.
func (m *machine) costOf(c config) int32 {
	cost := m.short.cost[c.state]
	if c.stack != nil {
		cost += c.stack.cost
	}
	return min(cost, never)
}

// begin returns the place at the beginning of a rule.
func (m *machine) begin(rule int) *place {
	m.follow(m.a.starts[rule], nil)
	return m.gathered()
}

// returned returns the place behind the rule that has a stack.
func (m *machine) returned(f *frame) *place {
	if f.back == nil {
		m.follow(f.to, f.up)
		f.back = m.gathered()
	}
	return f.back
}

// step returns the place after a byte; m.dead if the byte cannot come.
func (m *machine) step(p *place, c byte) *place {
	if p == m.dead {
		return p
	}
	class := m.a.class[c]
	if n := p.next[class]; n != nil {
		return n
	}
	for _, cf := range p.configs {
		if st := &m.a.states[cf.state]; st.set.has(c) {
			m.follow(st.to, cf.stack)
		}
	}
	n := m.gathered()
	p.next[class] = n
	return n
}

// textOf returns the shortest completion of a config.
func (m *machine) textOf(c config) []byte {
	text := m.short.appendText(m.a, nil, c.state)
	for f := c.stack; f != nil; f = f.up {
		text = m.short.appendText(m.a, text, f.to)
	}
	return text
}
