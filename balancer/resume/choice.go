package resume

import (
	"bytes"
	"encoding/json"

	"roundhouse/balancer/wire"
)

// maxChoices is how many choices a stream may have that is resumed.
const maxChoices = 256

// choice is one of the answers that a stream carries side by side.
type choice struct {
	prompt    []int32 // the ids of its prompt, from a worker that says them
	tokens    []int32 // its token ids so far
	back      pendingText
	begun     bool   // an event of it was relayed
	blind     bool   // text came without token ids
	ended     bool   // its finish_reason was relayed
	answering bool   // text of the answer, not of its reasoning, was relayed
	thought   string // the field that its reasoning came in; "": there was none
	said      script // the relayed text, if it may have to be compared
	lost      bool   // not all that was relayed is in said
	parted    splitter
	logprobs  int // how many log probabilities were relayed
	shown     int // how many token ids were, where the client asked for them
	limit     int // by ids: the tokens after which it ends; 0: the worker knows
	skip      *replay
}

// choicesOf is how many choices the answer to a request has.
func choicesOf(a *Asked) int {
	n := 1
	if a.Peek.N > 1 {
		var asked struct {
			N int `json:"n"`
		}
		if json.Unmarshal(a.Body, &asked) == nil {
			n = max(1, asked.N)
		}
	}
	if a.API != Text || !a.Peek.Prompt.Set() {
		return n
	}
	v := a.Peek.Prompt.Of(a.Body)
	if v[0] != '[' {
		return n
	}
	if first := bytes.TrimLeft(v[1:], " \t\r\n"); first[0] != '"' && first[0] != '[' {
		return n // one prompt of token ids
	}
	var prompts []json.RawMessage
	if json.Unmarshal(v, &prompts) != nil {
		return n
	}
	return n * max(1, len(prompts))
}

// find returns the choice that an event is of; nil where it is of none, or of one
// that was not asked for.
func (s *Stream) find(data []byte) *choice {
	if len(s.choices) == 1 {
		if bytes.Contains(data, []byte(`"choices":[]`)) {
			return nil
		}
		return &s.choices[0]
	}
	var e struct {
		Choices []struct {
			Index int `json:"index"`
		} `json:"choices"`
	}
	if json.Unmarshal(data, &e) != nil || len(e.Choices) == 0 {
		return nil
	}
	i := e.Choices[0].Index
	if s.way == ByIDs && i >= 0 && i < len(s.order) {
		i = s.order[i]
	}
	if len(e.Choices) > 1 || i < 0 || i >= len(s.choices) {
		s.rigid, s.plain = true, false // not as the door knows it: it passes, and is not resumed
		return nil
	}
	return &s.choices[i]
}

// promptOf is the ids of a choice's prompt: its own, or those of the first choice
// of the same prompt.
func (s *Stream) promptOf(i int) []int32 {
	if p := s.choices[i].prompt; len(p) > 0 {
		return p
	}
	return s.choices[i-i%s.each()].prompt
}

// each is how many choices a prompt has.
func (s *Stream) each() int {
	if s.a.API == Chat {
		return len(s.choices)
	}
	return max(1, min(int(s.a.Peek.N), len(s.choices)))
}

// cutIDs takes the token ids that the door asked for out of an event of the
// choice, and returns the event and how many ids there were.
func (s *Stream) cutIDs(c *choice, ev []byte) ([]byte, int) {
	before := len(c.tokens)
	if s.a.Peek.WantsTokenIDs {
		if v, ok := wire.Field(ev, `"token_ids"`); ok {
			c.tokens = wire.Ints(c.tokens, v)
		}
		return ev, len(c.tokens) - before
	}
	ev, _ = wire.CutField(ev, `"token_ids"`, func(v []byte) { c.tokens = wire.Ints(c.tokens, v) })
	ids := len(c.tokens) - before
	ev, _ = wire.CutField(ev, `"prompt_token_ids"`, func(v []byte) {
		// Later events say null.
		if s.way == Anew && len(c.prompt) == 0 && (!s.byField() || s.a.Peek.IncludeUsage) {
			c.prompt = wire.Ints(nil, v)
		}
	})
	return ev, ids
}
