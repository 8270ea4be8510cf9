package balancer

import (
	"errors"
	"io"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/resume"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// relay is the way of an answer that streams, from the sockets of its workers to
// the client's. The answer itself, and how it goes on, is a resume.Stream.
type relay struct {
	x       *exchange
	answer  resume.Stream
	started bool // the head of the answer was written
	cors    []byte

	front   []byte // the head, until the first write
	closing bool   // the worker's body is over
	closed  bool   // the last chunk was written
	meter   recorder
}

// The errors that end one worker's part of a stream.
var (
	errCut  = errors.New("the worker's stream broke off")
	errIdle = errors.New("the worker was silent for too long")
)

// newRelay is the way of an exchange's answer, which streams.
func newRelay(x *exchange) *relay {
	s := &relay{x: x, meter: recorder{x: x}}
	x.answer, x.beats = &s.answer, s
	a := &x.asked
	name := ""
	if a.keepsName() {
		name = a.peek.Model
	}
	s.answer.Open(resume.Asked{
		API: apiOf(a), Peek: &a.peek, Body: x.payload.Body, Model: a.model, Name: name, End: *a.pool.End.Load(),
		Enabled: x.v.set.Door.Resume.Enabled && a.kind != surface.Stored, Open: a.kind == surface.Form || a.kind == surface.Stored, Context: s.context(),
	})
	return s
}

// apiOf is how the events of an answer are shaped.
func apiOf(a *asked) resume.API {
	switch {
	case a.kind == surface.Chat:
		return resume.Chat
	case a.kind == surface.Text:
		return resume.Text
	case a.path == surface.MessagesPath:
		return resume.Messages
	case a.kind == surface.Generation || a.kind == surface.Stored:
		return resume.Responses
	}
	return resume.Other
}

// relay passes on a worker's events until the stream ends or breaks.
func (s *relay) relay(a *wire.Answer) error {
	x := s.x
	c := x.booking.connection()
	if c == nil {
		return errGone
	}
	if !s.started {
		s.head()
	}
	if s.front != nil && c.Buffered() == 0 {
		// Nothing has come behind the worker's head yet, and it may be long.
		if err := s.write(nil); err != nil {
			return err
		}
	}
	s.answer.Feed(x.booking.own)
	r := *conn.NewReader(a)
	for {
		var b []byte
		var err error
		if c.Buffered() > 0 {
			b, err = r.Decode(c)
		} else if err = s.await(c); err == nil {
			continue
		}
		s.closing = err == io.EOF && r.Whole
		if len(b) > 0 {
			if werr := s.pass(b); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			if s.answer.Done() || s.answer.MayEnd() && (r.Whole || r.OpenEnded()) {
				return s.finishUpstream(&r)
			}
			return errCut
		}
		if err != nil {
			return err
		}
	}
}

// pass relays the whole events among the bytes that a worker has sent, many in
// one write.
func (s *relay) pass(b []byte) error {
	o := conn.LendOut()
	defer o.Free()
	got, broken := s.answer.Take(&o.Out, b)
	x := s.x
	s.meter.take(&got)
	if got.Events > 0 {
		if s.answer.Events() > 0 && x.payload.Body != nil {
			s.keepSpare()
		}
		s.meter.relayed(got.Events)
	}
	s.account()
	if err := s.rewrite(o); err != nil {
		return err
	}
	s.closing = s.closing && broken == nil
	if err := s.flush(o); err != nil {
		return err
	}
	return broken
}

// finishUpstream keeps or closes the connection of a stream that came whole.
func (s *relay) finishUpstream(r *conn.Reader) error {
	if r.Reusable() {
		s.x.booking.keep(s.x.d.now())
	} else {
		s.x.booking.drop()
	}
	return nil
}

// await waits for the worker's next bytes, and keeps the client's connection
// alive meanwhile.
func (s *relay) await(c *conn.Conn) error {
	x := s.x
	now := x.d.now()
	from := now
	for {
		c.ReadIn(now, x.d.step)
		err := c.Fill()
		if err == nil {
			return nil
		}
		if !conn.TimedOut(err) {
			if err == io.EOF {
				return io.EOF
			}
			return errCut
		}
		if x.booking.over() {
			return errGone
		}
		if !s.heartbeat() {
			return errWriting
		}
		now = x.d.now()
		limit := int64(time.Duration(x.v.set.Door.Limits.Idle))
		if s.answer.Events() == 0 {
			// A long prefill is no hang while the worker makes progress.
			limit = int64(time.Duration(x.v.set.Door.Limits.FirstByte))
			from = max(from, x.d.ledger.Account(x.booking.worker.Load().Acct, now).ProgressAt)
		}
		if now-from > limit {
			return errIdle
		}
	}
}

// heartbeat writes a comment line between two events. It has no empty line
// behind it: some clients take that for an event.
func (s *relay) heartbeat() bool {
	if !s.started {
		return true
	}
	return s.write([]byte(": heartbeat\n")) == nil
}

// head prepares the head of the answer; it leaves with the first bytes.
func (s *relay) head() {
	s.started = true
	x := s.x
	x.record.status = 200
	x.record.state.Store(phaseStreaming)
	b := make([]byte, 0, 512)
	b = append(b, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\n"...)
	b = surface.AppendDate(b)
	b = append(b, s.cors...)
	b = x.record.marks(b, x.asked.id, x.pass)
	if x.asked.http10 {
		x.close = true
	} else {
		b = append(b, "transfer-encoding: chunked\r\n"...)
	}
	if x.g.pipelined() {
		x.close = true
	}
	if x.close {
		b = append(b, "connection: close\r\n"...)
	}
	s.front = append(b, "\r\n"...)
}

// write sends payload as one chunk.
func (s *relay) write(payload []byte) error {
	o := conn.LendOut()
	defer o.Free()
	o.B = append(o.B, payload...)
	return s.flush(o)
}

// flush sends the content of an out buffer as one chunk.
func (s *relay) flush(o *conn.Out) error {
	s.x.logged.answered(o.B[conn.ChunkHead:])
	b := o.Framed(!s.x.asked.http10)
	if s.closing && s.answer.MayEnd() && !s.x.asked.http10 && b != nil {
		b = append(b, lastChunk...)
		s.closed = true
	}
	if s.front != nil {
		b = append(s.front, b...)
		s.front = nil
	}
	if b == nil {
		return nil
	}
	if s.x.g.send(b) != nil {
		return errWriting
	}
	return nil
}

// terminate writes the end of the chunked body.
func (s *relay) terminate() bool {
	x := s.x
	if !x.asked.http10 && !s.closed {
		if x.g.send([]byte(lastChunk)) != nil {
			return false
		}
	}
	return !x.close
}

// whole writes an answer that is no stream.
func (s *relay) whole(status int, head reply, body []byte) bool {
	x := s.x
	x.record.status = status
	b := x.head(make([]byte, 0, 512+len(body)), head, len(body), s.cors)
	s.started = true
	x.logged.answered(body)
	defer x.g.sent()
	return x.g.send(append(b, body...)) == nil && !x.close
}

// refuse tells the client that it will get no answer: as an answer while none
// has begun, else as an event.
func (s *relay) refuse(f *surface.Failure) bool {
	x := s.x
	was := x.record.status
	x.refused(f)
	if s.started {
		x.record.status = was
		return s.fail(f)
	}
	return s.whole(f.Status, headOf(f), f.JSON(x.asked.path))
}

// fail ends a stream that has begun with one error event, and neither [DONE]
// nor the last chunk: clients take those for success. The connection ends.
func (s *relay) fail(f *surface.Failure) bool {
	x := s.x
	x.record.outcome, x.record.code = "failed", f.Code
	if x.booking.Charge.Worker() != nil {
		x.booking.drop()
		x.release(ledger.Neutral)
	}
	s.write(f.Event(x.asked.path))
	return false
}

// context is the longest context of the worker that the exchange was at last,
// or, where that one does not say, of another of its pool; 0: none says. Workers
// report it of their models, and it stays known when a worker is gone.
func (s *relay) context() int64 {
	x := s.x
	if w := x.booking.worker.Load(); w != nil && w.MaxLen.Load() > 0 {
		return w.MaxLen.Load()
	}
	for _, w := range *x.asked.pool.Workers.Load() {
		if n := w.MaxLen.Load(); n > 0 {
			return n
		}
	}
	return 0
}

// keepSpare makes the body a spare, or gives it back at once where the stream
// could not go on with it anyway.
func (s *relay) keepSpare() {
	x := s.x
	if s.answer.MayResume() {
		x.payload.KeepSpare(&x.d.memory)
		return
	}
	x.payload.GiveBack(&x.d.memory)
}

// account books the memory that the answer keeps for going on elsewhere, beyond the little that
// every stream keeps. Where there is no room, or its body had to make some, the stream
// gives it up.
func (s *relay) account() {
	x, p := s.x, &s.x.payload
	if !s.answer.MayResume() && p.Kept == 0 {
		return
	}
	more := s.answer.Kept() - p.Kept
	if s.answer.Events() > 0 && p.Lost() && s.answer.MayResume() {
		s.answer.GiveUp()
	} else if more <= keptStep {
		return
	} else if x.d.memory.SpareRoom(more) && x.d.memory.Take(more) {
		p.Kept += more
		return
	} else if s.answer.MayResume() {
		s.answer.GiveUp()
		p.GiveBack(&x.d.memory)
		x.d.metrics.Resumed(x.asked.pool.Name, "memory", "impossible")
	}
	if left := s.answer.Kept(); left < p.Kept {
		x.d.memory.Give(p.Kept - left)
		p.Kept = left
	}
}

// keptStep is the growth of the memory that a stream keeps before it is booked.
const keptStep = 16 << 10

// rewrite lets the filters rewrite the whole events that o holds.
func (s *relay) rewrite(o *conn.Out) error {
	if !s.x.pass.WantsChunks() || len(o.B) == conn.ChunkHead {
		return nil
	}
	out, refusal := s.x.pass.Chunk(o.B[conn.ChunkHead:], s.answer.Done())
	if refusal != nil {
		return errFiltered
	}
	o.B = append(o.B[:conn.ChunkHead], out...)
	return nil
}
