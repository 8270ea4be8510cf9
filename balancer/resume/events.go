package resume

import (
	"bytes"
	"encoding/json"
	"strconv"

	"roundhouse/balancer/wire"
)

// event looks at the event at the end of o, turns it into the client's
// event, and reports whether there is any.
func (s *Stream) event(o *Out, at int) bool {
	data, ok := wire.EventData(o.B[at:])
	if !ok {
		return s.way != Again && s.way != ByIDs // a comment is of no use in the middle of another answer
	}
	if string(data) == "[DONE]" {
		return s.end()
	}
	if bytes.HasPrefix(data, []byte(`{"error"`)) || bytes.HasPrefix(data, []byte(`{"type":"error"`)) || bytes.HasPrefix(o.B[at:], []byte("event: error\n")) {
		return s.workerError(data)
	}
	if s.a.API == Messages || s.a.API == Responses {
		return s.namedEvent(o, at, data)
	}
	c := s.find(data)
	if c != nil && c.ended && s.way == ByIDs {
		return false // the worker may have more, for it has one limit for all choices
	}
	ids := 0
	if s.ids {
		var drop bool
		if ids, drop = s.cut(c, o, at); drop {
			return false
		}
		data, _ = wire.EventData(o.B[at:])
	} else if bytes.Contains(data, []byte(`"usage":{`)) {
		s.got.Usage.Read(data)
	}
	if c == nil {
		return s.besides(o, at, data)
	}
	switch {
	case c.skip != nil:
		if !c.skip.event(s, c, o, at) {
			return false
		}
	case s.way == ByIDs:
		if !s.translate(c, o, at) {
			c.back.silent += ids
			return false
		}
	case s.way == Again:
		s.rename(o, at)
	}
	data, _ = wire.EventData(o.B[at:])
	s.note(c, data, ids)
	return true
}

// end deals with the mark behind the last event.
func (s *Stream) end() bool {
	for i := range s.choices {
		if r := s.choices[i].skip; r != nil && !r.over() {
			s.broken = ErrDiffers
			return false
		}
	}
	if s.names.behind() {
		s.broken = ErrDiffers
		return false
	}
	again := s.done
	s.done = true
	return !again
}

// besides deals with an event of no choice: the usage at the end.
func (s *Stream) besides(o *Out, at int, data []byte) bool {
	usage := bytes.Contains(data, []byte(`"usage":{`))
	if usage && s.counted {
		return false // of an answer that was given again
	}
	s.counted = s.counted || usage
	if s.way == ByIDs {
		s.wholeUsage(o, at)
	}
	if s.way == Again || s.way == ByIDs {
		s.rename(o, at)
	}
	if s.way == ByIDs && s.a.API == Chat {
		s.put(o, at, `"object"`, []byte(`"chat.completion.chunk"`))
	}
	s.counts(0)
	return true
}

// note keeps the content of an event that is relayed.
func (s *Stream) note(c *choice, data []byte, ids int) {
	if s.id == "" {
		s.identify(data)
	}
	s.follow(c, data, ids)
	if s.ids && ids == 0 && len(c.tokens) == 0 && s.way == Anew && hasText(data) {
		c.blind, s.ready = true, false
	}
	c.begun = true
	if bytes.Contains(data, []byte(`"finish_reason":"`)) {
		c.ended = true
	}
	if s.a.API == Chat && !c.answering {
		c.heed(data)
	}
	switch {
	case !s.keepsText(c):
		c.lost = c.lost || hasText(data) || bytes.Contains(data, []byte(`"tool_calls"`))
	default:
		c.said.add(data)
		if s.a.Peek.Logprobs {
			c.logprobs += countLogprobs(data)
		}
		if s.a.Peek.WantsTokenIDs {
			c.shown += countIDs(data)
		}
	}
	s.counts(ids)
}

// heed notes whether reasoning or the answer itself is told.
func (c *choice) heed(data []byte) {
	says := func(field string) bool {
		at := bytes.Index(data, []byte(field))
		return at >= 0 && at+len(field) < len(data) && data[at+len(field)] != '"'
	}
	c.answering = says(`"content":"`)
	for _, name := range [...]string{"reasoning_content", "reasoning"} {
		if c.thought == "" && says(`"`+name+`":"`) {
			c.thought = name
		}
	}
}

// counts counts an event that is relayed.
func (s *Stream) counts(ids int) {
	s.events++
	s.got.Tokens += int64(max(1, ids))
}

// identify keeps the id and the date that the client knows the answer by.
func (s *Stream) identify(data []byte) {
	if v, ok := wire.Field(data, `"id"`); ok && len(v) > 2 && v[0] == '"' {
		s.id = string(v[1 : len(v)-1])
	}
	if v, ok := wire.Field(data, `"created"`); ok {
		s.created, _ = strconv.ParseInt(string(v), 10, 64)
	}
}

// cut takes the token ids and the usage that the door asked for out of an
// event. It returns how many ids there were and whether nothing is left that
// the client asked for.
func (s *Stream) cut(c *choice, o *Out, at int) (ids int, drop bool) {
	ev := o.B[at:]
	if c != nil {
		ev, ids = s.cutIDs(c, ev)
	}
	if bytes.Contains(ev, []byte(`"usage"`)) {
		ev, drop = s.cutUsage(ev)
	}
	o.B = o.B[:at+len(ev)]
	return ids, drop
}

func (s *Stream) cutUsage(ev []byte) (left []byte, drop bool) {
	if v, ok := wire.Field(ev, `"usage"`); ok && v[0] == '{' {
		s.got.Usage.Read(v)
		if s.way == ByIDs {
			s.got.Usage.Prompt, s.got.Usage.Generated = s.prompts(), s.Tokens()
		}
		if !s.a.Peek.IncludeUsage && bytes.Contains(ev, []byte(`"choices":[]`)) {
			return ev, true
		}
	}
	if !s.a.Peek.IncludeUsage {
		ev, _ = wire.CutField(ev, `"usage"`, nil)
	}
	return ev, false
}

// workerError deals with an error event of the worker's: a client's own
// mistake is passed on, a fault of the worker's breaks the stream.
func (s *Stream) workerError(data []byte) bool {
	v, ok := wire.Field(data, `"code"`)
	mistake := ok && len(v) == 3 && v[0] == '4'
	if s.a.API == Messages {
		mistake = mistake || bytes.Contains(data, []byte(`"invalid_request_error"`)) || bytes.Contains(data, []byte(`"BadRequestError"`))
	}
	if !mistake {
		s.broken = ErrEvent
		return false
	}
	for i := range s.choices {
		s.choices[i].ended = true
	}
	s.whole, s.got.Refused = true, true
	return true
}

// keepName puts the name that the client asked for into the event at the end of
// o.
func (s *Stream) keepName(o *Out, at int) {
	if s.a.Name != "" {
		ev := append([]byte(nil), Rename(o.B[at:], s.a.Model, s.a.Name)...)
		o.B = append(o.B[:at], ev...)
	}
}

// rename gives an event of another answer the id and the date that the client
// knows.
func (s *Stream) rename(o *Out, at int) {
	ev := append([]byte(nil), o.B[at:]...)
	ev = setField(ev, `"id"`, quote(s.id))
	if s.created != 0 {
		ev = setField(ev, `"created"`, strconv.AppendInt(nil, s.created, 10))
	}
	o.B = append(o.B[:at], ev...)
}

// aborted reports whether an event of the worker's says that the answer was aborted.
func (s *Stream) aborted(event []byte) bool {
	if s.ours || s.a.Open && s.a.API == Responses { // a stored one may have been cancelled
		return false
	}
	data, ok := wire.EventData(event)
	if !ok {
		return false
	}
	if s.a.API <= Text {
		return aborts(data)
	}
	var e ending
	switch kind := string(eventType(event)); {
	case s.a.API == Messages && kind == "message_delta":
		return !s.twice() && json.Unmarshal(data, &e) == nil && e.Delta != nil && e.Delta.Stop == ""
	case s.a.API == Responses && kind == "response.completed":
		return bytes.Contains(data, []byte(`"cancelled"`)) && json.Unmarshal(data, &e) == nil && e.Response != nil && e.Response.Status == "cancelled"
	}
	return false
}

// twice reports whether messages end without a reason at the place where they did so at
// the worker before: then it is their end.
func (s *Stream) twice() bool {
	return s.way == Again && s.events == s.since && !s.names.behind() && bytes.IndexByte(s.names.log, markText) >= 0
}

// holds reports whether an event is held until the next one is there.
func (s *Stream) holds(event []byte) bool {
	if s.ours || s.a.Open {
		return false
	}
	switch s.a.API {
	case Messages:
		return string(eventType(event)) == "content_block_stop"
	case Responses:
		return bytes.HasSuffix(eventType(event), []byte(".done"))
	}
	return false
}
