package server

import (
	"bytes"

	"roundhouse/worker"
	"roundhouse/worker/parser"
	"roundhouse/worker/tokenizer"
)

// thinking is what a request allows in the way of thoughts before the answer.
type thinking struct {
	allowed bool // the worker has a parser for them, and the prompt has not ended them
	begun   bool // the prompt has begun them
	budget  *int // tokens that they may take; nil, -1: as many as there are
}

// check refuses a budget that cannot be kept.
func (s *Server) checkBudget(budget *int) *apiError {
	switch {
	case budget == nil || *budget == -1:
		return nil
	case *budget < 0:
		return badValue("thinking_token_budget", "`thinking_token_budget` must be a non-negative integer or -1 for unlimited.")
	case s.cfg.ReasoningParser == "":
		return badValue("", "thinking_token_budget is set but reasoning_config is not configured. Please set --reasoning-parser to use thinking_token_budget.")
	}
	return nil
}

// thought is a guide that holds from the end of the reasoning on. When the
// budget runs out before that end, it is brought about.
type thought struct {
	worker.Guide                      // of the answer; nil: it is free
	tok          *tokenizer.Tokenizer // whose markers are looked for
	marks        parser.Marks         // of the reasoning
	vocab        int                  // of the model, which may be more than the tokenizer's
	shut         []int32              // the marker that ends the reasoning
	ending       int                  // tokens of it that were brought about
	forced       bool                 // the next token is to be of the marker
	ends         []int32              // tokens with which the model ends its answer
	least        int                  // tokens that the form takes
	left         int                  // tokens that the reasoning may still take; -1: all
	state        int8                 // maybe, inside or behind
	tail         []byte               // text since the reasoning began, as far as a marker may stand in it
	masked       []uint32
}

const (
	maybe  = iota // nothing was said: the reasoning may begin, or the answer
	inside        // the reasoning has begun
	behind        // the answer's guide holds
)

// afterThought makes a guide wait for the reasoning's end; g is nil where only
// the reasoning has a budget.
func (s *Server) afterThought(g worker.Guide, least int, t thinking) worker.Guide {
	out := &thought{
		Guide: g, tok: s.cfg.Tokenizer, marks: s.marks(), vocab: s.cfg.Vocab, ends: s.cfg.Engine.Config().EOS, least: least, left: value(t.budget, -1),
	}
	if id, ok := out.tok.TokenID(out.marks.Shut); ok {
		out.shut = []int32{id}
	} else {
		out.shut = out.tok.Encode(out.marks.Shut, tokenizer.EncodeOptions{})
	}
	if t.begun || out.marks.Always {
		out.state = inside
	}
	return out
}

// Mask implements worker.Guide.
func (t *thought) Mask(remaining int) []uint32 {
	switch t.state {
	case behind:
		return t.answerMask(remaining)
	case maybe:
		mask := t.answerMask(remaining)
		open, ok := t.tok.TokenID(t.marks.Open)
		if !ok || mask == nil || remaining <= t.least+2 {
			return mask
		}
		t.masked = append(t.masked[:0], mask...)
		t.masked[open/32] |= 1 << (open % 32)
		return t.masked
	}
	tight := t.Guide != nil && remaining <= t.least+len(t.shut)
	if t.forced = tight || t.left == 0 || t.ending > 0; t.forced {
		t.fill(0)
		id := t.shut[min(t.ending, len(t.shut)-1)]
		t.masked[id/32] |= 1 << (id % 32)
		return t.masked
	}
	if t.Guide == nil {
		return nil
	}
	// A form is owed: the answer must not end among the thoughts.
	t.fill(^uint32(0))
	for _, id := range t.ends {
		t.masked[id/32] &^= 1 << (id % 32)
	}
	return t.masked
}

func (t *thought) answerMask(remaining int) []uint32 {
	if t.Guide == nil {
		return nil
	}
	return t.Guide.Mask(remaining)
}

// fill makes the mask of the model's vocabulary.
func (t *thought) fill(word uint32) {
	if t.masked = t.masked[:0]; cap(t.masked) < (t.vocab+31)/32 {
		t.masked = make([]uint32, 0, (t.vocab+31)/32)
	}
	for range (t.vocab + 31) / 32 {
		t.masked = append(t.masked, word)
	}
	if over := t.vocab % 32; over > 0 {
		t.masked[len(t.masked)-1] &= 1<<over - 1
	}
}

// Accept implements worker.Guide.
func (t *thought) Accept(token int32) bool {
	switch t.state {
	case behind:
		return t.Guide == nil || t.Guide.Accept(token)
	case maybe:
		if open, ok := t.tok.TokenID(t.marks.Open); ok && token == open {
			t.state = inside
			return true
		}
		t.state = behind
		return t.Guide == nil || t.Guide.Accept(token)
	}
	switch {
	case t.forced:
		t.ending++
	case t.left > 0:
		t.left--
	}
	t.tail = append(t.tail, t.tok.TokenBytes(token)...)
	if bytes.Contains(t.tail, []byte(t.marks.Shut)) {
		t.state, t.tail = behind, nil
		return true
	}
	if n := len(t.tail) - len(t.marks.Shut); n > 0 {
		t.tail = t.tail[n:]
	}
	return true
}

// Done implements worker.Guide.
func (t *thought) Done() bool { return t.Guide != nil && t.state == behind && t.Guide.Done() }

// unhurried is a guide of a form that max_tokens leaves no room for: the answer
// is cut, as one without a form would be.
type unhurried struct{ worker.Guide }

// Mask implements worker.Guide.
func (u unhurried) Mask(int) []uint32 { return u.Guide.Mask(1 << 30) }
