package balancer

import (
	"bytes"
	"encoding/json"
	"errors"

	"roundhouse/balancer/ledger"
	"roundhouse/balancer/wire"
)

// errDiffers says that a replay gave another answer than the client has.
var errDiffers = errors.New("the answer given again differs from what was sent")

// resumable reports whether token ids are asked for, so that the stream can go
// on at another worker from where it broke.
func (x *exchange) resumable() bool {
	return x.v.set.Door.Resume.Enabled && (x.asked.kind == kindChat || x.asked.kind == kindText) && x.asked.peek.N == 1 &&
		!x.asked.peek.PromptList && !x.asked.peek.Echo && !x.asked.peek.Empty
}

// keepText reports whether the text of the stream is kept, to compare a replay
// with.
func (s *stream) keepText() bool {
	if !s.x.v.set.Door.Resume.Enabled || s.x.asked.peek.N > 1 || s.x.asked.kind == kindGen || s.x.asked.peek.PromptList {
		return false
	}
	return !s.x.booking.own && (!s.plainText() || len(s.tokens) == 0 || s.back.parts)
}

// plainText reports whether a stream of a foreign worker can go on from token
// ids: nothing in it depends on more than the tokens so far.
func (s *stream) plainText() bool {
	return s.ids && s.plain
}

// plainAsked reports whether a request asks for text that depends on nothing
// but the tokens so far.
func (x *exchange) plainAsked() bool {
	p := &x.asked.peek
	return !p.Tools && !p.Structured && !p.Seed && !p.Logprobs && !p.WantsTokenIDs && !x.penalized()
}

// bounded reports whether it is known how long the answer may become, which a
// request that goes on with it must say.
func (x *exchange) bounded() bool {
	return x.asked.kind != kindChat || x.asked.peek.MaxTokens > 0 || x.context() > 0
}

// context is the longest context of the worker that the exchange was at last,
// or, where that one does not say, of another of its pool; 0: none says. It is
// what workers say of their models, which stays known when one is gone.
func (x *exchange) context() int64 {
	if w := x.booking.worker.Load(); w != nil && w.maxLen.Load() > 0 {
		return w.maxLen.Load()
	}
	for _, w := range *x.asked.pool.workers.Load() {
		if n := w.maxLen.Load(); n > 0 {
			return n
		}
	}
	return 0
}

// mayResume reports whether there is a way to go on with the stream elsewhere.
func (x *exchange) mayResume() bool {
	return x.v.set.Door.Resume.Enabled && x.asked.peek.N <= 1 && x.asked.kind != kindGen && !x.asked.peek.PromptList
}

// keepSpare makes the body a spare, or gives it back at once where the stream
// could not go on with it anyway.
func (x *exchange) keepSpare() {
	if x.mayResume() {
		x.payload.keepSpare(&x.d.memory)
		return
	}
	x.payload.give(&x.d.memory)
}

// prepareResume makes the exchange ready to go on after its worker broke off.
// It reports whether there is a way.
func (s *stream) prepareResume() bool {
	x := s.x
	if !x.mayResume() || s.id == "" || !x.payload.takeBack(&x.d.memory) {
		return false
	}
	if x.booking.own {
		if !s.ids {
			return false
		}
		x.leaveOutForeign()
		s.resumed = true
		x.booking.ask.Prompt, x.booking.ask.Expect = x.sizes()
		return true
	}
	if s.plainText() && len(s.tokens) > 0 && len(s.prompt) > 0 && s.rebuild() {
		s.resumed = true
		x.booking.ask.Prompt, x.booking.ask.Expect = x.sizes()
		return true
	}
	if len(s.text) == 0 && s.events > 1 && !s.back.parts {
		return false // its text was not kept
	}
	s.skip = &replay{s: s, want: s.text}
	s.tokens, s.alt = s.tokens[:0], nil
	s.plain = s.plain && !s.back.on // of what is swallowed now, nobody counts the characters
	s.resumed = true
	return true
}

// leaveOutForeign leaves the workers that are not ours out of the choice: they
// know no roundhouse_resume, and would begin anew.
func (x *exchange) leaveOutForeign() {
	for _, w := range *x.asked.pool.workers.Load() {
		if !w.own.Load() {
			x.booking.tried = append(x.booking.tried, ledger.Try{Worker: w.acct, Generation: w.acct.Generation(x.d.ledger)})
		}
	}
}

// sizes is what a stream that goes on needs: what was generated is prompt now.
func (x *exchange) sizes() (prompt, expect int64) {
	prompt = x.booking.ask.Prompt
	if x.record.usage.known {
		prompt = x.record.usage.prompt
	}
	return prompt + int64(len(x.s.tokens)), max(x.booking.ask.Expect/2, 1)
}

// closeEnded ends a stream whose worker died between the last token and the
// end mark: the answer is whole, and the door writes what is missing. It reports
// whether the connection can carry another request.
func (s *stream) closeEnded() bool {
	x := s.x
	var tail []byte
	if x.asked.peek.IncludeUsage && !x.record.usage.known && !s.done {
		return s.fail(workerFailed(x.asked.pool.name))
	}
	if !s.done && x.asked.kind != kindGen {
		tail = []byte("data: [DONE]\n\n")
		s.done = true
	}
	if len(tail) > 0 && s.write(tail) != nil {
		return false
	}
	return s.terminate()
}

// replay swallows an answer that is given again, while it equals what the
// client has.
type replay struct {
	s    *stream
	want []byte
	got  []byte
}

func (r *replay) over() bool { return len(r.got) >= len(r.want) }

// event compares one event of the replay, and reports whether it is to be
// relayed: the first that goes on after what the client has, and all after it.
func (r *replay) event(o *outBuf, at int, data []byte) bool {
	before := len(r.got)
	r.got = appendText(r.got, data)
	n := min(len(r.got), len(r.want))
	if !bytes.Equal(r.got[before:n], r.want[min(before, n):n]) {
		r.s.broken = errDiffers
		return false
	}
	if len(r.got) <= len(r.want) && !bytes.Contains(data, []byte(`"finish_reason":"`)) {
		return false // nothing new
	}
	if before < len(r.want) && len(r.got) > len(r.want) {
		// The event reaches over what the client has: only its end is new.
		if !trimText(o, at, r.got[len(r.want):]) {
			r.s.broken = errDiffers
			return false
		}
	}
	r.s.skip = nil
	r.s.rename(o, at)
	data, _ = wire.EventData(o.b[at:])
	r.s.note(data, 1)
	r.s.renamed = true
	return true
}

// textFields are the strings of a delta that make up the answer.
var textFields = [...]string{`"reasoning_content":"`, `"reasoning":"`, `"content":"`, `"text":"`, `"name":"`, `"arguments":"`}

// appendText appends the answer's text in an event, as it is written in JSON,
// each part after a byte that tells which it is; parts of one kind run on. Of a
// tool call these are its name and its arguments, and which call they are of:
// its id is drawn anew by every worker, and how it is cut into events is
// nobody's promise.
func appendText(dst, data []byte) []byte {
	for i, f := range textFields {
		rest := data
		for {
			at := bytes.Index(rest, []byte(f))
			if at < 0 {
				break
			}
			rest = rest[at+len(f):]
			end := stringEnd(rest)
			if end > 0 {
				if tag := tagOf(i, data[:len(data)-len(rest)]); lastTag(dst) != tag {
					dst = append(dst, tag)
				}
				dst = append(dst, rest[:end]...)
			}
			rest = rest[end:]
		}
	}
	return dst
}

// The tags of text fields, and of the parts of a tool call by its index.
const (
	tagText = 0x01
	tagName = 0x08
	tagArgs = 0x10
)

// tagOf tells what a text field is of; before is the event up to its value.
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

// lastTag finds which kind of part dst ends with; JSON text holds no bytes
// below 0x20.
func lastTag(dst []byte) byte {
	for i := len(dst) - 1; i >= 0; i-- {
		if dst[i] < 0x20 {
			return dst[i]
		}
	}
	return 0
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

// trimText leaves of the one text in an event only its end.
func trimText(o *outBuf, at int, end []byte) bool {
	if len(end) == 0 || end[0] < 0x20 {
		return false
	}
	ev := o.b[at:]
	for _, f := range textFields {
		from := bytes.Index(ev, []byte(f))
		if from < 0 {
			continue
		}
		from += len(f)
		n := stringEnd(ev[from:])
		if n < len(end) || !bytes.Equal(ev[from+n-len(end):from+n], end) {
			continue
		}
		o.b = append(o.b[:at+from], o.b[at+from+n-len(end):]...)
		return true
	}
	return false
}

// rename gives an event of another answer the id and the date that the client
// knows.
func (s *stream) rename(o *outBuf, at int) {
	ev := append([]byte(nil), o.b[at:]...)
	ev = setField(ev, `"id"`, quote(s.id))
	if s.created != 0 {
		created, err := json.Marshal(s.created)
		if err == nil {
			ev = setField(ev, `"created"`, created)
		}
	}
	o.b = append(o.b[:at], ev...)
}

// setField replaces the value of the first field of that name.
func setField(ev []byte, quoted string, value []byte) []byte {
	v, ok := wire.Field(ev, quoted)
	if !ok {
		return ev
	}
	from := len(ev) - len(ev[bytes.Index(ev, []byte(quoted)):])
	from += bytes.Index(ev[from:], v)
	out := append([]byte(nil), ev[:from]...)
	out = append(out, value...)
	return append(out, ev[from+len(v):]...)
}
