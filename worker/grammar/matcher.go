package grammar

import (
	"bytes"
	"fmt"
)

// Matcher follows one output through a grammar. It is not safe for use by
// several goroutines at once; matchers of one grammar are independent.
type Matcher struct {
	g     *Grammar
	at    *place
	plan  *plan // a completion that is being followed; nil: the place's own
	from  int   // how much of it was said
	ended bool  // an end token was taken
	mask  []uint32
}

// Start returns a matcher at the beginning of an output.
func (g *Grammar) Start() *Matcher {
	return &Matcher{g: g, at: g.begin, mask: make([]uint32, g.vocab.Words())}
}

// Mask returns which tokens may come next, a bit for each: token t is allowed
// if mask[t/32] has bit t%32. remaining is how many tokens may still come, this
// one included; tokens after which the output could not be completed within
// them are left out. The end tokens are allowed where the output is complete.
// If not even the shortest completion fits, the mask leads along it.
//
// The slice is the matcher's own, and holds until the next call.
func (m *Matcher) Mask(remaining int) []uint32 {
	clear(m.mask)
	if m.ended {
		return m.mask
	}
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	left := int32(min(remaining, never-1))
	m.g.masker.fill(m.mask, m.at, left)
	m.allowPlan(left)
	if m.at.accept {
		for _, t := range m.g.vocab.ends {
			if t >= 0 && int(t) < m.g.vocab.size {
				m.mask[t>>5] |= 1 << (t & 31)
			}
		}
	}
	return m.mask
}

// current returns the completion that is followed.
func (m *Matcher) current() (text []byte, tokens []int32) {
	p := m.plan
	if p == nil {
		p = m.g.masker.planFor(m.at)
	}
	return p.text[m.from:], p.tokens[m.from:]
}

// allowPlan adds the tokens that follow the completion. What else is allowed
// was judged by each token's own completion, which may take more tokens than
// the rest of the one that is being followed. It does nothing while the
// completion fits with ease.
func (m *Matcher) allowPlan(left int32) {
	if m.plan == nil {
		if m.at.worst <= left-1 {
			return
		}
		m.plan, m.from = m.g.masker.planFor(m.at), 0
	}
	text, tokens := m.current()
	limit := max(left, tokens[0]) // too small a budget: the plan all the same
	for n := 1; n <= min(len(text), maxPlanned); n++ {
		if tokens[n] > limit-1 {
			continue
		}
		if t, ok := m.g.vocab.ids[string(text[:n])]; ok {
			m.mask[t>>5] |= 1 << (t & 31)
		}
	}
}

// Advance takes the next token of the output.
func (m *Matcher) Advance(token int32) error {
	if m.ended {
		return fmt.Errorf("token %d follows the output's end", token)
	}
	for _, t := range m.g.vocab.ends {
		if t == token {
			if !m.at.accept {
				return fmt.Errorf("token %d ends the output, which is not complete", token)
			}
			m.ended = true
			return nil
		}
	}
	if token < 0 || int(token) >= m.g.vocab.size || len(m.g.vocab.tokens[token]) == 0 {
		return fmt.Errorf("token %d has no text, which the grammar asks for", token)
	}
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	return m.take(token, m.g.vocab.tokens[token])
}

func (m *Matcher) take(token int32, b []byte) error {
	p := m.at
	for _, c := range b {
		if p = m.g.masker.step(p, c); p == m.g.masker.dead {
			return fmt.Errorf("token %d, %q, does not fit the grammar", token, b)
		}
	}
	m.at = p
	if m.plan == nil {
		return nil
	}
	if bytes.HasPrefix(m.plan.text[m.from:], b) {
		m.from += len(b)
	} else {
		m.plan, m.from = nil, 0
	}
	return nil
}

// Complete reports whether the output may end here.
func (m *Matcher) Complete() bool { return m.ended || m.at.accept }

// Done reports whether the output is complete and nothing can follow.
func (m *Matcher) Done() bool { return m.ended || m.at.accept && len(m.at.configs) == 0 }

// MinTokens returns how many tokens complete the output, at least; end tokens
// do not count. It is an estimate from above: fewer may do.
func (m *Matcher) MinTokens() int {
	if m.ended {
		return 0
	}
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	_, tokens := m.current()
	return int(min(tokens[0], m.g.masker.tokensOf(m.at)))
}

// Fork returns a matcher at the same place, for another continuation.
func (m *Matcher) Fork() *Matcher {
	c := *m
	c.mask = make([]uint32, len(m.mask))
	return &c
}
