package resume

import (
	"bytes"
	"errors"
	"fmt"

	"roundhouse/balancer/wire"
)

// API is the kind of a stream's events.
type API byte

// The kinds. Streams of Other are passed on and never resumed.
const (
	Chat API = iota
	Text
	Messages
	Responses
	Other
)

// Asked is a request, as far as a stream must know it.
type Asked struct {
	API     API
	Peek    *wire.Peek
	Body    []byte // read by Open and not kept
	Model   string // as workers know it
	Name    string // as the client is to see the model; "": as it comes
	End     string // the marker that ends reasoning; "": none is known
	Enabled bool   // the stream may be resumed
	Open    bool   // no event must end it: it ends where its body does
	Context int64  // the longest context of the workers; 0: not known
}

// Way is how a stream goes on at another worker.
type Way byte

// The ways.
const (
	Anew    Way = iota // the first worker's: the request as it is
	ByField            // with roundhouse_resume, at a worker of ours
	ByIDs              // as a completion of token ids, in Path and Body
	Again              // from its beginning, compared with the client's text
)

// The errors that end one worker's part of a stream.
var (
	ErrEvent   = errors.New("the worker ended the answer with an error, or as aborted")
	ErrDiffers = errors.New("the answer given again differs from what was sent")
	errJSON    = errors.New("the worker sent an event that is not JSON")
)

// maxEvent bounds one event of a stream, beside the ids of the prompt, which come
// in one event and take perIDs bytes for each of the request's at most.
const (
	maxEvent = 4 << 20
	perIDs   = 8
)

// Stream is an answer that streams. It outlives the workers that feed it, and
// must not be copied once it is open.
type Stream struct {
	a     Asked
	ids   bool // token ids and usage are asked for, and cut out of the client's events
	plain bool // token ids are enough to go on
	own   bool // the worker that the stream began with is one of ours
	ours  bool // the present one is
	rigid bool // no worker can go on with it: it depends on more than its request
	spent bool // the memory for that was dropped

	partial []byte // an event that is not whole yet
	held    []byte // events that wait for the next one
	most    int    // bytes of it
	id      string
	created int64
	events  int64 // relayed
	before  int64 // events when the last worker began
	since   int64 // events when the present worker began
	done    bool  // [DONE] was relayed
	counted bool  // the usage at the end was relayed
	whole   bool  // a messages or responses stream has ended
	broken  error // why the worker's part cannot go on

	way     Way
	next    Next
	choices []choice
	ready   bool        // every choice can go on by token ids
	one     [1]choice   // where choices lie mostly
	order   []int       // by ids: the choices that go on, by their index at the worker
	names   namedEvents // of messages and responses
	got     Got
}

// Got is the findings of Take.
type Got struct {
	Events  int // relayed
	Tokens  int64
	Usage   Usage
	Stored  []byte // the first event, which names a stored response
	Refused bool   // the worker told the client of a mistake of its own
}

// Out gathers the bytes that leave for the client in one write.
type Out struct {
	B    []byte
	like wire.EventPattern // the event before
}

// Forget makes it fit for other bytes.
func (o *Out) Forget() { o.like.Forget() }

// Open begins a stream. The zero Stream is not open.
func (s *Stream) Open(a Asked) {
	s.a, s.most = a, maxEvent+perIDs*len(a.Body)
	n := choicesOf(&a)
	s.choices = s.one[:]
	if n > 1 && n <= maxChoices {
		s.choices = make([]choice, n)
	}
	p := a.Peek
	s.rigid = !a.Enabled || a.API == Other || n > maxChoices
	s.ids = !s.rigid && (a.API == Chat || a.API == Text) && !p.Echo && !p.Empty
	s.plain = s.ids && plainAsked(&a) && (a.API == Text || p.MaxTokens > 0 || a.Context > 0)
	if s.plain {
		s.watchStops(a.Body)
	}
	s.a.Body = nil
}

// Feed begins the part of a worker, which is one of ours or not.
func (s *Stream) Feed(own bool) {
	s.ours, s.since = own, s.events
	if s.events == 0 && s.way == Anew {
		s.own = own
	}
}

// Take puts the whole events among the bytes that a worker has sent behind o's
// content, and keeps the bytes of an event that is not whole yet. An error ends the
// worker's part.
func (s *Stream) Take(o *Out, b []byte) (Got, error) {
	s.got = Got{}
	for len(s.partial) > 0 && len(b) > 0 && s.broken == nil {
		// Only the end of the event that has begun is put behind it.
		end := len(b)
		if at := bytes.Index(b, []byte("\n\n")); at >= 0 {
			end = at + 2
		}
		s.partial = append(s.partial, b[:end]...)
		b = b[end:]
		left := s.takeWhole(o, s.partial)
		s.partial = append(s.partial[:0], left...)
	}
	left := s.takeWhole(o, b)
	if s.spent {
		s.dropIDs()
	}
	switch {
	case len(left)+len(s.partial) > s.most:
		return s.got, fmt.Errorf("the worker sent an event of more than %d MiB", s.most>>20)
	case len(left) > 0:
		s.partial = append(s.partial[:0], left...)
	case len(s.partial) == 0:
		s.partial = nil // an idle stream holds no buffer
	}
	return s.got, s.broken
}

// takeWhole puts the whole events at the front of b into o, and returns the bytes
// behind them.
func (s *Stream) takeWhole(o *Out, b []byte) (left []byte) {
	for s.broken == nil {
		b = b[s.takeLike(o, b):]
		end := wire.NextEvent(b)
		if end == 0 {
			break
		}
		switch ev := b[:end]; {
		case s.holds(ev):
			s.held = append(s.held, ev...)
		case s.aborted(ev):
			s.broken = ErrEvent
		default:
			s.release(o)
			if s.takeEvent(o, ev) && len(b) > 2*end {
				s.learn(o, ev)
			}
		}
		b = b[end:]
	}
	return b
}

// release takes the events that were held.
func (s *Stream) release(o *Out) {
	held := s.held
	for s.held = nil; len(held) > 0 && s.broken == nil; {
		end := wire.NextEvent(held)
		s.takeEvent(o, held[:end])
		held = held[end:]
	}
}

// takeEvent puts one event into o, and reports whether it is relayed.
func (s *Stream) takeEvent(o *Out, ev []byte) bool {
	if s.broken != nil {
		return false
	}
	at := len(o.B)
	o.B = append(o.B, ev...)
	if !s.event(o, at) {
		o.B = o.B[:at]
		return false
	}
	s.keepName(o, at)
	s.got.Events++
	return true
}

// takeLike puts those events at the front of b into o that are like the event
// before them, and does for all of them together the work of event for each.
func (s *Stream) takeLike(o *Out, b []byte) (used int) {
	c := &s.choices[0]
	before, events, keeps := len(c.tokens), 0, s.keepsText(c)
	for {
		var n int
		if n, o.B, c.tokens = o.like.Take(o.B, b[used:], c.tokens); n == 0 {
			break
		}
		if keeps {
			text, field := o.like.Text(b[used:])
			c.said.run(tagText+byte(field), text)
		}
		events++
		used += n
	}
	if events == 0 {
		return 0
	}
	tokens := int64(events)
	if o.like.HasIDs() {
		tokens = int64(len(c.tokens) - before)
		c.back.silent = 0
	}
	c.lost = c.lost || !keeps
	s.events += int64(events)
	s.got.Events += events
	s.got.Tokens += tokens
	return used
}

// learn has the events that follow taken by comparing them with this one, where
// event would do no more with them than to relay them and to count their tokens.
func (s *Stream) learn(o *Out, event []byte) {
	o.like.Forget()
	c := &s.choices[0]
	if len(s.choices) > 1 || s.a.API > Text || s.id == "" || s.way != Anew && s.way != ByField || c.back.on ||
		c.ended || s.a.Name != "" || s.keepsText(c) && (s.a.Peek.Logprobs || s.a.Peek.WantsTokenIDs || !saysOnce(event)) {
		return
	}
	for _, f := range [...]string{`"usage"`, `"finish_reason":"`, `"prompt_token_ids":[`, `{"error"`} {
		if bytes.Contains(event, []byte(f)) {
			return
		}
	}
	if !s.ids && bytes.Contains(event, []byte(`"token_ids":[`)) {
		return // not asked for by the door, and not counted
	}
	if s.ids && !bytes.Contains(event, []byte(`"token_ids":[`)) && bytes.Contains(event, []byte(`token_ids"`)) {
		return // a null that is to be cut out
	}
	o.like.Learn(event, textFields[:4], !s.a.Peek.WantsTokenIDs)
}

// Events is how many events the client has.
func (s *Stream) Events() int64 { return s.events }

// Done reports whether the end mark was relayed.
func (s *Stream) Done() bool { return s.done }

// Ended reports whether the answer is whole; an end mark or a usage may still
// come.
func (s *Stream) Ended() bool {
	if s.whole {
		return true
	}
	for i := range s.choices {
		if !s.choices[i].ended {
			return false
		}
	}
	return true
}

// MayEnd reports whether the answer is whole where its body is.
func (s *Stream) MayEnd() bool { return s.a.Open || s.done || s.Ended() }

// Resumed reports whether the stream is to go on at another worker, or does.
func (s *Stream) Resumed() bool { return s.way != Anew }

// MayResume reports whether there may be a way on for the stream: while there is,
// its request's body is of use.
func (s *Stream) MayResume() bool { return !s.rigid }

// Tokens is how many token ids of the answer are known.
func (s *Stream) Tokens() (n int64) {
	for i := range s.choices {
		n += int64(len(s.choices[i].tokens))
	}
	return n
}

// Advanced reports whether the client got events since it was last called.
func (s *Stream) Advanced() bool {
	more := s.events > s.before
	s.before = s.events
	return more
}
