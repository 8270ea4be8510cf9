package resume

import (
	"encoding/json"
	"strings"

	"roundhouse/balancer/wire"
)

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
	Newer     *string `json:"reasoning,omitempty"`
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

// translate turns the event at the end of o, of the worker that goes on by token
// ids, into an event of the stream that the client knows. It reports whether
// anything is left to relay.
func (s *Stream) translate(c *choice, o *Out, at int) bool {
	data, ok := wire.EventData(o.B[at:])
	var e completionChunk
	if !ok || json.Unmarshal(data, &e) != nil || len(e.Choices) != 1 {
		s.broken = errJSON
		return false
	}
	ch := &e.Choices[0]
	said := ch.Text
	if c.back.on {
		if ch.Text, ok = c.back.say(ch.Text, len(c.tokens)); !ok {
			s.broken = ErrDiffers
			return false
		}
	}
	finish := ch.FinishReason
	if c.limit > 0 && len(c.tokens) >= c.limit && finish == nil {
		if len(c.tokens) > c.limit {
			s.broken = ErrDiffers // a part of its text is too much
			return false
		}
		length := "length"
		finish = &length // the other choices may have more
	}
	if said != ch.Text && ch.Text == "" && finish == nil {
		return false
	}
	if s.a.API == Chat {
		return s.translateChat(c, o, at, &e, finish)
	}
	index := s.index(c)
	if said != ch.Text {
		s.put(o, at, `"text"`, quote(ch.Text))
	}
	if finish != ch.FinishReason {
		s.put(o, at, `"finish_reason"`, quote(*finish))
	}
	if len(s.choices) > 1 {
		s.put(o, at, `"index"`, mustJSON(index))
	}
	s.rename(o, at)
	s.wholeUsage(o, at)
	return true
}

// translateChat is translate for a chat.
func (s *Stream) translateChat(c *choice, o *Out, at int, e *completionChunk, finish *string) bool {
	ch := &e.Choices[0]
	out := chatChunk{ID: s.id, Object: "chat.completion.chunk", Created: s.created, Model: e.Model, Choices: []chatChoice{}, Usage: s.total(e.Usage)}
	choice := chatChoice{Index: s.index(c), FinishReason: finish, StopReason: ch.StopReason, Delta: c.parted.split(ch.Text, finish != nil, c.thought)}
	if c.parted.over && c.back.turn < 0 {
		c.back.turn = len(c.back.text)
	}
	if choice.Delta == (chatDelta{}) && finish == nil {
		return false
	}
	out.Choices = append(out.Choices, choice)
	o.B = append(append(append(o.B[:at], "data: "...), mustJSON(out)...), "\n\n"...)
	return true
}

// index is the place of a choice among those of the stream.
func (s *Stream) index(c *choice) int {
	for i := range s.choices {
		if c == &s.choices[i] {
			return i
		}
	}
	return 0
}

// put replaces a field of the event at the end of o.
func (s *Stream) put(o *Out, at int, field string, value []byte) {
	ev := append([]byte(nil), o.B[at:]...)
	o.B = append(o.B[:at], setField(ev, field, value)...)
}

// splitter parts reasoning from the answer.
type splitter struct {
	end     string // the marker between them; "": none is known
	over    bool   // the reasoning is over
	pending string // what may be the beginning of the marker
}

// split parts a text at the marker, which may come in pieces where the worker
// holds text back for stop strings. The reasoning goes into the field in which it
// came before.
func (p *splitter) split(text string, last bool, field string) (d chatDelta) {
	text, p.pending = p.pending+text, ""
	if text == "" {
		return d
	}
	if p.end == "" || p.over {
		d.Content = &text
		return d
	}
	before, after, found := strings.Cut(text, p.end)
	p.over = found
	for n := min(len(p.end)-1, len(before)); n > 0 && !found && !last; n-- {
		if strings.HasSuffix(before, p.end[:n]) {
			before, p.pending = before[:len(before)-n], p.end[:n]
			break
		}
	}
	switch {
	case before == "":
	case field == "reasoning":
		d.Newer = &before
	default:
		d.Reasoning = &before
	}
	if after != "" {
		d.Content = &after
	}
	return d
}

// total is the usage of all workers that fed the stream, in the place of the last
// worker's.
func (s *Stream) total(last json.RawMessage) json.RawMessage {
	if len(last) == 0 || string(last) == "null" {
		return nil
	}
	var m map[string]any
	if json.Unmarshal(last, &m) != nil {
		return nil
	}
	prompt, all := s.prompts(), s.Tokens()
	m["prompt_tokens"], m["completion_tokens"], m["total_tokens"] = prompt, all, prompt+all
	return mustJSON(m)
}

// wholeUsage puts the usage of all workers into the event at the end of o.
func (s *Stream) wholeUsage(o *Out, at int) {
	if v, ok := wire.Field(o.B[at:], `"usage"`); ok {
		if u := s.total(v); u != nil {
			s.put(o, at, `"usage"`, u)
		}
	}
}
