package resume

import (
	"bytes"
	"encoding/json"
	"slices"

	"roundhouse/balancer/wire"
)

// script is the text of a choice, each part after a byte that tells which it is.
type script struct {
	text []byte
	last byte // the tag of its last part
}

// replay swallows a choice that is given again, while it equals the client's.
type replay struct {
	got      script
	logprobs int
	shown    int
	ended    bool
	done     bool // all that the client has was said again
}

// over reports whether the choice has said again all that the client has.
func (r *replay) over() bool { return r.done }

// event compares an event of the choice, and reports whether it is to be relayed:
// the first with something that the client has not, and all after it. An event
// that reaches over the client's end loses its beginning.
func (r *replay) event(s *Stream, c *choice, o *Out, at int) bool {
	data, _ := wire.EventData(o.B[at:])
	was, want := r.got, c.said.text
	r.got.add(data)
	n := min(len(r.got.text), len(want))
	if from := len(was.text); from < n && !bytes.Equal(r.got.text[from:n], want[from:n]) {
		s.broken = ErrDiffers
		return false
	}
	probs, ids := 0, 0
	if s.a.Peek.Logprobs {
		probs = countLogprobs(data)
	}
	if s.a.Peek.WantsTokenIDs {
		ids = countIDs(data)
	}
	r.logprobs, r.shown = r.logprobs+probs, r.shown+ids
	r.ended = r.ended || bytes.Contains(data, []byte(`"finish_reason":"`))
	r.done = len(r.got.text) >= len(want) && r.logprobs >= c.logprobs && r.shown >= c.shown && (r.ended || !c.ended)
	news := len(r.got.text) > len(want) || r.logprobs > c.logprobs || r.shown > c.shown || r.ended && !c.ended
	if r.ended && !r.done || news && (c.ended || !r.done) {
		s.broken = ErrDiffers
		return false
	}
	if !news {
		return false
	}
	if len(was.text) < len(want) && !trimText(o, at, was, len(want)) {
		s.broken = ErrDiffers
		return false
	}
	if old := c.logprobs - (r.logprobs - probs); old > 0 && probs > 0 {
		trimLogprobs(s, o, at, old)
	}
	if old := c.shown - (r.shown - ids); old > 0 && ids > 0 {
		trimIDs(s, o, at, old)
	}
	c.skip = nil
	s.rename(o, at)
	return true
}

// textFields are the strings of a delta that make up the answer.
var textFields = [...]string{`"reasoning_content":"`, `"reasoning":"`, `"content":"`, `"text":"`, `"name":"`, `"arguments":"`}

// add appends the answer's text in an event, as it is written in JSON; parts of
// one kind run on. Of a tool call these are its name and its arguments, and which
// call they are of: its id is drawn anew by every worker, and how it is cut into
// events is nobody's promise.
func (t *script) add(data []byte) {
	eachText(data, func(tag byte, from, to int) { t.run(tag, data[from:to]) })
}

// run appends one text.
func (t *script) run(tag byte, text []byte) {
	if t.last != tag {
		t.text, t.last = append(t.text, tag), tag
	}
	t.text = append(t.text, text...)
}

// saysOnce reports whether an event carries one text.
func saysOnce(event []byte) bool {
	n := 0
	eachText(event, func(byte, int, int) { n++ })
	return n == 1
}

// eachText calls f with each text of an event that is not empty, in a fixed
// order, and where it lies.
func eachText(data []byte, f func(tag byte, from, to int)) {
	for i, field := range textFields {
		from := 0
		for {
			at := bytes.Index(data[from:], []byte(field))
			if at < 0 {
				break
			}
			from += at + len(field)
			end := from + stringEnd(data[from:])
			if end > from {
				f(tagOf(i, data[:from]), from, end)
			}
			from = end
		}
	}
}

// The tags of text fields, and of the parts of a tool call by its index.
const (
	tagText = 0x01
	tagName = 0x08
	tagArgs = 0x10
)

// tagOf returns the kind of a text field; before is the event up to its value.
func tagOf(field int, before []byte) byte {
	if field < 4 || !bytes.Contains(before, []byte(`"tool_calls"`)) {
		return tagText + byte(field)
	}
	const index = `"index":`
	call := byte(0)
	if at := bytes.LastIndex(before, []byte(index)); at >= 0 && at+len(index) < len(before) {
		call = (before[at+len(index)] - '0') & 7
	}
	if field == 4 {
		return tagName + call
	}
	return tagArgs + call
}

func stringEnd(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(b)
}

// trimText leaves of the texts in an event only those behind the first want bytes
// of the whole; was is the whole before the event. It reports false where that
// leaves half a tool call that cannot be told apart.
func trimText(o *Out, at int, was script, want int) bool {
	out := append([]byte(nil), o.B[at:]...)
	pos, tag, names := len(was.text), was.last, 0
	var cuts []wire.Span
	eachText(out, func(t byte, from, to int) {
		if t != tag {
			pos, tag = pos+1, t
		}
		if n := min(to-from, want-pos); n > 0 {
			cuts = append(cuts, wire.Span{From: from, To: from + n})
			if t >= tagName && t < tagArgs {
				names++
			}
		}
		pos += to - from
	})
	slices.SortFunc(cuts, func(a, b wire.Span) int { return b.From - a.From })
	for _, c := range cuts {
		out = append(out[:c.From], out[c.To:]...)
	}
	if calls := bytes.Index(out, []byte(`"tool_calls"`)); names > 0 && calls >= 0 {
		rest := out[calls:]
		for _, field := range [...]string{`"id"`, `"type"`, `"name"`} {
			rest, _ = wire.CutField(rest, field, nil)
		}
		out = out[:calls+len(rest)]
	}
	o.B = append(o.B[:at], out...)
	return names <= 1
}

// probabilities are the log probabilities of an event: of a chat, or of a
// completion.
type probabilities struct {
	Content []json.RawMessage `json:"content,omitempty"`
	Refusal json.RawMessage   `json:"refusal,omitempty"`
	Offsets []json.RawMessage `json:"text_offset,omitempty"`
	Values  []json.RawMessage `json:"token_logprobs,omitempty"`
	Tokens  []json.RawMessage `json:"tokens,omitempty"`
	Top     []json.RawMessage `json:"top_logprobs,omitempty"`
}

func probabilitiesOf(data []byte) (p probabilities) {
	if v, ok := wire.Field(data, `"logprobs"`); ok && json.Unmarshal(v, &p) != nil {
		return probabilities{}
	}
	return p
}

// countLogprobs is how many log probabilities an event has.
func countLogprobs(data []byte) int {
	p := probabilitiesOf(data)
	return max(len(p.Content), len(p.Tokens))
}

// trimLogprobs takes the first n log probabilities out of the event at the end of
// o.
func trimLogprobs(s *Stream, o *Out, at, n int) {
	p := probabilitiesOf(o.B[at:])
	for _, list := range [...]*[]json.RawMessage{&p.Content, &p.Offsets, &p.Values, &p.Tokens, &p.Top} {
		*list = (*list)[min(n, len(*list)):]
	}
	s.put(o, at, `"logprobs"`, mustJSON(p))
}

// countIDs is how many token ids of the answer an event has.
func countIDs(data []byte) int {
	v, _ := wire.Field(data, `"token_ids"`)
	return len(wire.Ints(nil, v))
}

// trimIDs takes the first n token ids out of the event at the end of o.
func trimIDs(s *Stream, o *Out, at, n int) {
	v, _ := wire.Field(o.B[at:], `"token_ids"`)
	ids := wire.Ints(nil, v)
	s.put(o, at, `"token_ids"`, mustJSON(ids[min(n, len(ids)):]))
}
