package server

import (
	"bytes"

	"roundhouse/worker"
	"roundhouse/worker/tokenizer"
)

// thought is a guide that holds from the end of the reasoning on. When the
// budget runs out before that end, it is brought about.
type thought struct {
	worker.Guide
	tok    *tokenizer.Tokenizer
	vocab  int    // of the model, which may have more tokens than the tokenizer
	least  int    // tokens that the form takes
	state  int8   // thinking, maybe or behind
	tail   []byte // text since the reasoning began, as far as a marker may stand in it
	masked []uint32
}

const (
	maybe    = iota // nothing was said: the reasoning may begin, or the form
	thinking        // inside
	behind          // the form holds
)

// afterThought makes a guide wait for the reasoning's end.
func (s *Server) afterThought(g worker.Guide, least int, inside bool) worker.Guide {
	t := &thought{Guide: g, tok: s.cfg.Tokenizer, vocab: s.cfg.Vocab, least: least}
	if inside || s.cfg.ReasoningParser == "deepseek_r1" {
		t.state = thinking
	}
	return t
}

// Mask implements worker.Guide.
func (t *thought) Mask(remaining int) []uint32 {
	switch t.state {
	case behind:
		return t.Guide.Mask(remaining)
	case maybe:
		mask := t.Guide.Mask(remaining)
		open, ok := t.tok.TokenID(thinkOpen)
		if !ok || mask == nil || remaining <= t.least+2 {
			return mask
		}
		t.masked = append(t.masked[:0], mask...)
		t.masked[open/32] |= 1 << (open % 32)
		return t.masked
	}
	shut, ok := t.tok.TokenID(thinkShut)
	if !ok || remaining > t.least+1 {
		return nil
	}
	t.masked = append(t.masked[:0], make([]uint32, (t.vocab+31)/32)...)
	clear(t.masked)
	t.masked[shut/32] |= 1 << (shut % 32)
	return t.masked
}

// Accept implements worker.Guide.
func (t *thought) Accept(token int32) bool {
	switch t.state {
	case behind:
		return t.Guide.Accept(token)
	case maybe:
		if open, ok := t.tok.TokenID(thinkOpen); ok && token == open {
			t.state = thinking
			return true
		}
		t.state = behind
		return t.Guide.Accept(token)
	}
	t.tail = append(t.tail, t.tok.TokenBytes(token)...)
	if bytes.Contains(t.tail, []byte(thinkShut)) {
		t.state, t.tail = behind, nil
		return true
	}
	if n := len(t.tail) - len(thinkShut); n > 0 {
		t.tail = t.tail[n:]
	}
	return true
}

// Done implements worker.Guide.
func (t *thought) Done() bool { return t.state == behind && t.Guide.Done() }
