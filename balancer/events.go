package balancer

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"roundhouse/balancer/wire"
)

// maxEvent bounds one event of a stream.
const maxEvent = 4 << 20

// pass relays the whole events among the bytes that a worker has sent, many in
// one write, and keeps what is not whole yet.
func (s *stream) pass(b []byte) error {
	o := newOut()
	defer o.free()
	n := 0
	for len(s.partial) > 0 && len(b) > 0 && s.broken == nil {
		// Only what ends the event that has begun is put behind it.
		end := len(b)
		if at := bytes.Index(b, []byte("\n\n")); at >= 0 {
			end = at + 2
		}
		s.partial = append(s.partial, b[:end]...)
		b = b[end:]
		k, left := s.relayWhole(o, s.partial)
		n += k
		s.partial = append(s.partial[:0], left...)
	}
	k, left := s.relayWhole(o, b)
	n += k
	switch {
	case len(left)+len(s.partial) > maxEvent:
		return fmt.Errorf("the worker sent an event of more than %d MiB", maxEvent>>20)
	case len(left) > 0:
		s.partial = append(s.partial[:0], left...)
	case len(s.partial) == 0:
		s.partial = nil // an idle stream holds no buffer
	}
	if n > 0 {
		if s.events > 0 && s.x.payload.body != nil {
			s.x.keepSpare()
		}
		s.batch(n)
	}
	if err := s.rewrite(o); err != nil {
		return err
	}
	return s.flush(o)
}

// relayWhole puts the whole events at the front of b into o, and returns how
// many they were and what follows them.
func (s *stream) relayWhole(o *outBuf, b []byte) (n int, left []byte) {
	for s.broken == nil {
		k, used := s.relayAlike(o, b)
		n, b = n+k, b[used:]
		end := wire.NextEvent(b)
		if end == 0 {
			break
		}
		at := len(o.b)
		o.b = append(o.b, b[:end]...)
		if s.event(o, at) {
			s.keepName(o, at)
			n++
			if len(b) > 2*end {
				s.learn(o, b[:end])
			}
		} else {
			o.b = o.b[:at]
		}
		b = b[end:]
	}
	return n, b
}

// relayAlike puts those events at the front of b into o that are like the one
// before them, and does for all of them together what event does for one.
func (s *stream) relayAlike(o *outBuf, b []byte) (events, used int) {
	before := len(s.tokens)
	for {
		var n int
		if n, o.b, s.tokens = o.like.Take(o.b, b[used:], s.tokens); n == 0 {
			break
		}
		events++
		used += n
	}
	if events == 0 {
		return 0, 0
	}
	tokens := int64(events)
	if o.like.HasIDs() {
		tokens = int64(len(s.tokens) - before)
		s.back.silent = 0
	}
	s.events += int64(events)
	s.x.d.ledger.Grow(&s.x.booking.charge, tokens)
	s.x.record.generated.Add(tokens)
	return events, used
}

// learn has the events that follow taken by comparing them with this one, where
// event would do no more with them than to relay them and to count their tokens.
func (s *stream) learn(o *outBuf, event []byte) {
	x := s.x
	o.like.Forget()
	if x.asked.kind == kindGen || s.id == "" || s.skip != nil || s.alt != nil || s.renamed || s.back.on || s.splits && !s.answering ||
		s.ended || x.keepsName() || s.keepText() {
		return
	}
	for _, f := range [...]string{`"usage"`, `"finish_reason":"`, `"prompt_token_ids"`, `{"error"`} {
		if bytes.Contains(event, []byte(f)) {
			return
		}
	}
	if !s.ids && bytes.Contains(event, []byte(`"token_ids"`)) {
		return // not asked for by the door, and not counted
	}
	o.like.Learn(event, textFields[:4], !x.asked.peek.WantsTokenIDs)
}

// batch books the time of a write with n events.
func (s *stream) batch(n int) {
	x := s.x
	now := x.d.now()
	if s.last == 0 {
		x.record.first = now
		x.d.ledger.First(&x.booking.charge, now)
		x.computed() // the next prompt like it may come
		x.asked.pool.pump(x.d)
		x.d.metrics.firstEvent(&x.asked, &x.record)
	} else {
		x.record.series.between(float64(now-s.last)/1e9/float64(n), n)
	}
	s.last = now
}

// event looks at the event at the end of o, cuts out of it what the client
// did not ask for, and reports whether it is to be relayed.
func (s *stream) event(o *outBuf, at int) bool {
	data, ok := wire.EventData(o.b[at:])
	if !ok {
		s.named(o.b[at:])
		return s.skip == nil
	}
	if string(data) == "[DONE]" {
		if s.skip != nil && !s.skip.over() {
			s.broken = errDiffers
			return false
		}
		again := s.done
		s.done = true
		return !again
	}
	if bytes.HasPrefix(data, []byte(`{"error"`)) {
		return s.workerError(data)
	}
	s.named(o.b[at:])
	ids := 0
	if s.ids {
		var drop bool
		if ids, drop = s.cut(o, at); drop {
			return false
		}
		data, _ = wire.EventData(o.b[at:])
	} else if bytes.Contains(data, []byte(`"usage":{`)) {
		s.x.record.usage.read(data)
	}
	if s.skip != nil {
		return s.skip.event(o, at, data)
	}
	switch {
	case s.alt != nil && s.resumed && !s.x.booking.own:
		if !s.translate(o, at) {
			return false
		}
		data, _ = wire.EventData(o.b[at:])
	case s.renamed:
		s.rename(o, at)
		data, _ = wire.EventData(o.b[at:])
	}
	s.note(data, ids)
	return true
}

// note keeps what an event says that is relayed.
func (s *stream) note(data []byte, ids int) {
	if s.id == "" && s.x.asked.kind != kindGen {
		s.identify(data)
	}
	s.follow(data, ids)
	if s.events++; s.events == 1 {
		s.x.keepHeld(data)
	}
	if bytes.Contains(data, []byte(`"finish_reason":"`)) {
		s.ended = true
	}
	if s.splits && !s.answering {
		s.answering = bytes.Contains(data, []byte(`"content":"`)) && !bytes.Contains(data, []byte(`"content":""`))
	}
	if s.keepText() {
		s.text = appendText(s.text, data)
	}
	if ids == 0 {
		ids = 1
	}
	s.x.d.ledger.Grow(&s.x.booking.charge, int64(ids))
	s.x.record.generated.Add(int64(ids))
}

// identify keeps the id and the date that the client knows the answer by.
func (s *stream) identify(data []byte) {
	if v, ok := wire.Field(data, `"id"`); ok && len(v) > 2 && v[0] == '"' {
		s.id = string(v[1 : len(v)-1])
	}
	if v, ok := wire.Field(data, `"created"`); ok {
		s.created, _ = strconv.ParseInt(string(v), 10, 64)
	}
}

// named looks for the events by which the responses and messages APIs end.
func (s *stream) named(event []byte) {
	if s.x.asked.kind != kindGen {
		return
	}
	for _, end := range [...]string{"event: response.completed", "event: response.failed", "event: response.incomplete", "event: message_stop"} {
		if bytes.HasPrefix(event, []byte(end)) {
			s.ended = true
		}
	}
}

// cut takes the token ids and the usage that the door asked for out of an
// event. It returns how many ids there were and whether nothing is left that
// the client asked for.
func (s *stream) cut(o *outBuf, at int) (ids int, drop bool) {
	ev := o.b[at:]
	p := &s.x.asked.peek
	if !p.WantsTokenIDs {
		before := len(s.tokens)
		// Streams with ids have one choice, so an event has one list of them.
		ev, _ = wire.CutField(ev, `"token_ids"`, func(v []byte) { s.tokens = wire.Ints(s.tokens, v) })
		ids = len(s.tokens) - before
		if s.events < 2 || s.resumed {
			ev, _ = wire.CutField(ev, `"prompt_token_ids"`, func(v []byte) {
				if !s.resumed && !s.x.booking.own {
					s.prompt = wire.Ints(s.prompt[:0], v)
				}
			})
		}
	} else if v, ok := wire.Field(ev, `"token_ids"`); ok {
		before := len(s.tokens)
		s.tokens = wire.Ints(s.tokens, v)
		ids = len(s.tokens) - before
	}
	if bytes.Contains(ev, []byte(`"usage"`)) {
		ev, drop = s.cutUsage(ev)
	}
	o.b = o.b[:at+len(ev)]
	return ids, drop
}

func (s *stream) cutUsage(ev []byte) (left []byte, drop bool) {
	if v, ok := wire.Field(ev, `"usage"`); ok && v[0] == '{' {
		s.x.record.usage.read(v)
		if !s.x.asked.peek.IncludeUsage && bytes.Contains(ev, []byte(`"choices":[]`)) {
			return ev, true
		}
	}
	if !s.x.asked.peek.IncludeUsage {
		ev, _ = wire.CutField(ev, `"usage"`, nil)
	}
	return ev, false
}

// errWorkerEvent says that the worker itself gave up, inside its stream.
var errWorkerEvent = errors.New("the worker ended the stream with an error event")

// workerError deals with an error event of the worker's: a client's own
// mistake is passed on, a fault of the worker's breaks the stream.
func (s *stream) workerError(data []byte) bool {
	if v, ok := wire.Field(data, `"code"`); ok && len(v) == 3 && v[0] == '4' {
		s.ended = true
		s.x.record.outcome = "client_error"
		return true
	}
	s.broken = errWorkerEvent
	return false
}
