package resume

import (
	"bytes"
	"encoding/json"

	"roundhouse/balancer/wire"
	"roundhouse/worker/api"
)

// Next is the request that goes on by token ids.
type Next struct {
	Path string
	Body []byte
}

// Way is how the stream goes on, or began.
func (s *Stream) Way() Way { return s.way }

// Next is the request of a stream that goes on by token ids.
func (s *Stream) Next() Next { return s.next }

// IDs reports whether token ids and the usage are to be asked of workers.
func (s *Stream) IDs() bool { return s.ids }

// WithoutIDs begins the stream without asking for token ids, at a worker that
// forbids the field. It does nothing once the client has events.
func (s *Stream) WithoutIDs() {
	if s.events == 0 {
		s.ids, s.plain = false, false
	}
}

// Field is the value of roundhouse_resume.
func (s *Stream) Field() api.Resume {
	return api.Resume{ID: s.id, Created: s.created, TokenIDs: s.choices[0].tokens}
}

// byField reports whether the stream goes on by roundhouse_resume.
func (s *Stream) byField() bool { return s.own && s.ids && len(s.choices) == 1 }

// keepsText reports whether the text of a choice is kept, to compare an answer
// given again with.
func (s *Stream) keepsText(c *choice) bool {
	if s.rigid || s.byField() {
		return false
	}
	return !s.plain || c.back.parts || !s.settled()
}

// settled reports whether every choice can go on by token ids from now on.
func (s *Stream) settled() bool {
	for i := 0; i < len(s.choices) && !s.ready; i++ {
		if !s.byIDs(i) {
			return false
		}
	}
	s.ready = true
	return true
}

// byIDs reports whether the ids of a choice are known, and whether text that
// follows would be taken for its own kind. Where the door knows no marker behind the
// reasoning, only the answer itself can go on.
func (s *Stream) byIDs(i int) bool {
	c := &s.choices[i]
	if len(s.promptOf(i)) == 0 || c.blind || c.skip != nil {
		return false
	}
	if s.a.API == Text || c.answering || s.a.End != "" && c.thought != "" {
		return true
	}
	// Where another choice answers and none has reasoned, this one will not.
	none, some := true, false
	for j := range s.choices {
		none = none && s.choices[j].thought == ""
		some = some || s.choices[j].answering
	}
	return none && some
}

// carried are the parameters of a chat request that a completion takes as they
// are.
var carried = [...]string{
	"model", "temperature", "top_p", "top_k", "min_p", "stop", "stop_token_ids", "ignore_eos", "logit_bias",
	"skip_special_tokens", "spaces_between_special_tokens", "bad_words", "allowed_token_ids", "user", "cache_salt", "priority",
	"include_stop_str_in_output",
}

// neutral are the parameters that make the next token depend on which of the
// former tokens were output, which a prompt of token ids cannot tell, each with
// the value at which it does nothing.
var neutral = map[string]float64{"presence_penalty": 0, "frequency_penalty": 0, "repetition_penalty": 1, "min_tokens": 0}

// plainAsked reports whether a request asks for text that depends on nothing but
// the tokens so far.
func plainAsked(a *Asked) bool {
	p := a.Peek
	if p.Tools || p.Structured || p.Seed || p.Logprobs || p.WantsTokenIDs {
		return false
	}
	for _, f := range [...]string{`_penalty"`, `"min_tokens"`, `"continue_final_message"`, `"prompt_embeds"`, `"use_beam_search"`, `"logits_processors"`, `"thinking_token_budget"`} {
		if a.names(f) {
			return neutralAsked(a.Body) && !hasMedia(a)
		}
	}
	return !hasMedia(a)
}

// names reports whether a field of the request may have this name, or end in it. The
// prompt, which is most of a body, is not searched.
func (a *Asked) names(field string) bool {
	before, behind := a.Body, []byte(nil)
	if p := a.Peek.Prompt; p.Set() {
		before, behind = a.Body[:p.From], a.Body[p.To:]
	}
	return bytes.Contains(before, []byte(field)) || bytes.Contains(behind, []byte(field))
}

// neutralAsked reports whether none of the parameters that a prompt of token ids
// cannot tell does anything.
func neutralAsked(body []byte) bool {
	var was map[string]json.RawMessage
	if json.Unmarshal(body, &was) != nil {
		return false
	}
	for _, name := range [...]string{"continue_final_message", "prompt_embeds", "use_beam_search", "logits_processors", "thinking_token_budget"} {
		if v, ok := was[name]; ok && string(v) != "null" && string(v) != "false" {
			return false
		}
	}
	for name, none := range neutral {
		v, ok := was[name]
		var x *float64
		if ok && (json.Unmarshal(v, &x) != nil || x != nil && *x != none) {
			return false
		}
	}
	return true
}

// hasMedia reports whether a chat holds more than text: of a picture or a sound,
// token ids tell no more than its place.
func hasMedia(a *Asked) bool {
	if a.API != Chat {
		return false
	}
	const field = `"type"`
	for b := a.Peek.Prompt.Of(a.Body); ; {
		at := bytes.Index(b, []byte(field))
		if at < 0 {
			return false
		}
		if v, ok := wire.Field(b[at:], field); ok && string(v) != `"text"` && string(v) != `"function"` {
			return true
		}
		b = b[at+len(field):]
	}
}

// Broke finds the way on after a worker has broken off; body is the client's
// request, nil where it is not there any more. It reports whether there is a way.
func (s *Stream) Broke(body []byte, context int64) bool {
	s.partial, s.held, s.broken = nil, nil, nil
	if s.events == 0 {
		s.again() // nothing was relayed: it begins anew
		s.way = Anew
		return true
	}
	if s.rigid || body == nil || s.id == "" && s.a.API <= Text {
		return false
	}
	if s.byField() && !s.Ended() {
		s.way = ByField
		return true
	}
	if s.rebuild(body, context) {
		s.way = ByIDs
		return true
	}
	if !s.keptText() {
		return false
	}
	s.again()
	s.way = Again
	return true
}

// keptText reports whether all that the client has can be compared.
func (s *Stream) keptText() bool {
	for i := range s.choices {
		if s.choices[i].lost {
			return false
		}
	}
	return true
}

// again makes the stream ready for the same answer from its beginning.
func (s *Stream) again() {
	s.next, s.order, s.ready = Next{}, nil, false
	s.names.again()
	for i := range s.choices {
		c := &s.choices[i]
		c.tokens, c.limit, c.skip = c.tokens[:0], 0, nil
		if c.begun && s.a.API <= Text {
			c.skip = &replay{}
		}
		// Nobody counts the characters of text that is swallowed now.
		s.plain = s.plain && !c.back.on
	}
}

// rebuild makes the completion request that goes on behind the tokens relayed
// so far, and reports whether there is one.
func (s *Stream) rebuild(body []byte, context int64) bool {
	if !s.plain || s.Ended() {
		return false
	}
	var was map[string]json.RawMessage
	if json.Unmarshal(body, &was) != nil {
		return false
	}
	var order []int
	for i := range s.choices {
		c := &s.choices[i]
		if c.ended {
			continue
		}
		if !s.byIDs(i) {
			return false
		}
		order = append(order, i)
	}
	now := map[string]any{"stream": true, "stream_options": s.options(was["stream_options"]), "return_token_ids": true}
	for _, k := range carried {
		if v, ok := was[k]; ok {
			now[k] = v
		}
	}
	now["model"] = s.a.Model
	prompts := make([][]int32, 0, len(order))
	most := int64(0)
	for _, i := range order {
		c := &s.choices[i]
		behind, ok := c.back.cut(len(c.tokens))
		if !ok {
			return false
		}
		c.tokens = c.tokens[:behind]
		left := s.left(i, context)
		if left <= 0 {
			return false
		}
		ids := make([]int32, 0, len(s.promptOf(i))+len(c.tokens))
		prompts = append(prompts, append(append(ids, s.promptOf(i)...), c.tokens...))
		c.limit = len(c.tokens) + int(left)
		if most == 0 || s.a.Peek.MaxTokens > 0 || s.a.API == Text {
			most = max(most, left)
		} else {
			most = min(most, left)
		}
	}
	now["max_tokens"], now["prompt"] = most, prompts
	if len(prompts) == 1 {
		now["prompt"] = prompts[0]
	}
	b, err := json.Marshal(now)
	if err != nil {
		return false
	}
	s.next, s.order = Next{Path: "/v1/completions", Body: b}, order
	for _, i := range order {
		s.choices[i].parted = splitter{end: s.a.End, over: s.choices[i].answering || s.a.End == ""}
	}
	return true
}

// left is how many tokens a choice may still have.
func (s *Stream) left(i int, context int64) int64 {
	had := int64(len(s.choices[i].tokens))
	switch {
	case s.a.Peek.MaxTokens > 0:
		return s.a.Peek.MaxTokens - had
	case s.a.API == Text:
		return 16 - had // vLLM's default
	}
	return context - int64(len(s.promptOf(i))) - had
}

// options are the stream options of a request that goes on: the usage is always
// asked for, and with every event where the client wants it so.
func (s *Stream) options(was json.RawMessage) map[string]bool {
	o := map[string]bool{"include_usage": true}
	var asked struct {
		Continuous bool `json:"continuous_usage_stats"`
	}
	if json.Unmarshal(was, &asked) == nil && asked.Continuous {
		o["continuous_usage_stats"] = true
	}
	return o
}

// Kept is the bytes that the stream keeps to be able to go on at another worker, and of
// an event that is not whole.
func (s *Stream) Kept() int64 {
	n := cap(s.partial) + cap(s.held) + len(s.next.Body) + cap(s.names.log) + cap(s.names.got)
	for i := range s.choices {
		c := &s.choices[i]
		n += 4*(cap(c.prompt)+cap(c.tokens)+cap(c.back.marks)+cap(c.back.text)) + cap(c.said.text)
		if c.skip != nil {
			n += cap(c.skip.got.text)
		}
	}
	return int64(n)
}

// GiveUp drops the memory for going on at another worker: the stream cannot any more. The
// measures of the present worker's part stay.
func (s *Stream) GiveUp() {
	s.rigid, s.plain = true, false
	if s.way == Again || s.way == ByIDs {
		return
	}
	s.spent, s.names = true, namedEvents{seq: s.names.seq}
	for i := range s.choices {
		c := &s.choices[i]
		c.back, c.said, c.lost = pendingText{}, script{}, true
	}
	s.dropIDs()
}

// dropIDs forgets token ids once they were counted.
func (s *Stream) dropIDs() {
	for i := range s.choices {
		c := &s.choices[i]
		if c.prompt, c.tokens = nil, c.tokens[:0]; cap(c.tokens) > fewIDs {
			c.tokens = nil
		}
	}
}

// fewIDs are so few that their room may stay.
const fewIDs = 256
