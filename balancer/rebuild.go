package balancer

import (
	"bytes"
	"encoding/json"
	"strings"

	"roundhouse/balancer/wire"
)

// alternative is the request that goes on with a stream of a foreign worker:
// a completion of the prompt's and the answer's token ids.
type alternative struct {
	path string
	body []byte
	chat bool // its events must be turned into those of a chat
	end  string
	over bool // the reasoning is over

	pending string // what may be the beginning of the end marker
}

// carried are the parameters of a chat request that a completion takes as they
// are.
var carried = [...]string{
	"model", "temperature", "top_p", "top_k", "min_p", "stop", "stop_token_ids", "ignore_eos", "logit_bias",
	"skip_special_tokens", "spaces_between_special_tokens", "bad_words", "allowed_token_ids", "user", "cache_salt", "priority",
	"include_stop_str_in_output", "min_tokens",
}

// penalized reports whether the next token depends on which of the former
// ones were output, which a prompt of token ids cannot tell.
func (x *exchange) penalized() bool {
	for _, f := range [...]string{`"presence_penalty"`, `"frequency_penalty"`, `"repetition_penalty"`, `"min_tokens"`, `"continue_final_message"`} {
		if bytes.Contains(x.payload.body, []byte(f)) {
			return true
		}
	}
	return false
}

// rebuild makes the completion request that goes on behind the tokens relayed
// so far.
func (s *stream) rebuild() bool {
	x := s.x
	var was map[string]json.RawMessage
	if json.Unmarshal(x.payload.body, &was) != nil {
		return false
	}
	now := map[string]any{"stream": true, "stream_options": map[string]bool{"include_usage": true}, "return_token_ids": true}
	for _, k := range carried {
		if v, ok := was[k]; ok {
			now[k] = v
		}
	}
	now["model"] = x.asked.model
	behind, ok := s.back.cut(len(s.tokens))
	if !ok {
		return false
	}
	s.tokens = s.tokens[:behind]
	ids := make([]int32, 0, len(s.prompt)+len(s.tokens))
	now["prompt"] = append(append(ids, s.prompt...), s.tokens...)
	left := int64(0)
	switch {
	case x.asked.peek.MaxTokens > 0:
		left = x.asked.peek.MaxTokens - int64(len(s.tokens))
	case x.asked.kind == kindText:
		left = 16 - int64(len(s.tokens)) // vLLM's default
	default:
		left = x.context() - int64(len(s.prompt)+len(s.tokens))
	}
	if left <= 0 {
		return false
	}
	now["max_tokens"] = left
	body, err := json.Marshal(now)
	if err != nil {
		return false
	}
	alt := &alternative{path: "/v1/completions", body: body, chat: x.asked.kind == kindChat, end: *x.asked.pool.end.Load()}
	if s.alt != nil {
		alt.over = s.alt.over
	} else {
		alt.over = s.answering
	}
	s.alt = alt
	return true
}

// completionChunk is what of a completion's event a chat's event is made of.
type completionChunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Text         string          `json:"text"`
		FinishReason *string         `json:"finish_reason"`
		StopReason   json.RawMessage `json:"stop_reason"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
}

type chatDelta struct {
	Content   *string `json:"content,omitempty"`
	Reasoning *string `json:"reasoning_content,omitempty"`
}

type chatChoice struct {
	Index        int             `json:"index"`
	Delta        chatDelta       `json:"delta"`
	Logprobs     *int            `json:"logprobs"`
	FinishReason *string         `json:"finish_reason"`
	StopReason   json.RawMessage `json:"stop_reason,omitempty"`
}

type chatChunk struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Choices []chatChoice    `json:"choices"`
	Usage   json.RawMessage `json:"usage,omitempty"`
}

// translate turns the event at the end of o, of the worker that goes on, into
// one of the stream that the client knows. It reports whether anything is
// left to relay.
func (s *stream) translate(o *outBuf, at int) bool {
	data, ok := wire.EventData(o.b[at:])
	if !ok {
		return true
	}
	var c completionChunk
	if json.Unmarshal(data, &c) != nil {
		s.broken = errCut
		return false
	}
	usage := s.wholeUsage(c.Usage)
	if s.back.on && len(c.Choices) > 0 {
		fresh, ok := s.back.say(c.Choices[0].Text, len(s.tokens))
		if !ok {
			s.broken = errDiffers
			return false
		}
		again := c.Choices[0].Text != fresh
		c.Choices[0].Text = fresh
		if again && !s.alt.chat {
			setText(o, at, fresh)
		}
		if again && fresh == "" && c.Choices[0].FinishReason == nil {
			return false
		}
	}
	if !s.alt.chat {
		s.rename(o, at)
		if usage != nil {
			ev := append([]byte(nil), o.b[at:]...)
			o.b = append(o.b[:at], setField(ev, `"usage"`, usage)...)
		}
		return true
	}
	out := chatChunk{ID: s.id, Object: "chat.completion.chunk", Created: s.created, Model: c.Model, Choices: []chatChoice{}, Usage: usage}
	for _, ch := range c.Choices {
		choice := chatChoice{FinishReason: ch.FinishReason, StopReason: ch.StopReason, Delta: s.alt.split(ch.Text, ch.FinishReason != nil)}
		if s.alt.over && s.back.turn < 0 {
			s.back.turn = len(s.back.text)
		}
		if choice.Delta == (chatDelta{}) && ch.FinishReason == nil {
			continue
		}
		out.Choices = append(out.Choices, choice)
	}
	if len(out.Choices) == 0 && len(c.Choices) > 0 {
		return false
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic("BUG: an event cannot be encoded: " + err.Error())
	}
	o.b = append(append(append(o.b[:at], "data: "...), b...), "\n\n"...)
	return true
}

// setText replaces the text of a completion's event.
func setText(o *outBuf, at int, text string) {
	ev := append([]byte(nil), o.b[at:]...)
	o.b = append(o.b[:at], setField(ev, `"text"`, quote(text))...)
}

// split parts reasoning from the answer at the pool's end marker, which may
// come in pieces where the worker holds text back for stop strings.
func (a *alternative) split(text string, last bool) chatDelta {
	text, a.pending = a.pending+text, ""
	if text == "" {
		return chatDelta{}
	}
	if a.end == "" || a.over {
		return chatDelta{Content: &text}
	}
	before, after, found := strings.Cut(text, a.end)
	a.over = found
	for n := min(len(a.end)-1, len(before)); n > 0 && !found && !last; n-- {
		if strings.HasSuffix(before, a.end[:n]) {
			before, a.pending = before[:len(before)-n], a.end[:n]
			break
		}
	}
	var d chatDelta
	if before != "" {
		d.Reasoning = &before
	}
	if after != "" {
		d.Content = &after
	}
	return d
}

// wholeUsage is the usage of all workers that fed the stream.
func (s *stream) wholeUsage(last json.RawMessage) json.RawMessage {
	if len(last) == 0 || string(last) == "null" {
		return nil
	}
	var m map[string]any
	if json.Unmarshal(last, &m) != nil {
		return nil
	}
	prompt, all := int64(len(s.prompt)), int64(len(s.tokens))
	m["prompt_tokens"], m["completion_tokens"], m["total_tokens"] = prompt, all, prompt+all
	b, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	s.x.record.usage.prompt, s.x.record.usage.generated = prompt, all
	return b
}
