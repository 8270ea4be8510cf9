package balancer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"roundhouse/balancer/conn"
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
	meter   meter
}

// The errors that end one worker's part of a stream.
var (
	errCut  = errors.New("the worker's stream broke off")
	errIdle = errors.New("the worker was silent for too long")
)

// hijack takes the connection out of fasthttp and runs the stream in a
// goroutine of its own, which holds nothing of fasthttp's.
func (s *relay) hijack(ctx *fasthttp.RequestCtx) {
	x := s.x
	if len(x.payload.Body) <= conn.BufSize {
		x.payload.Body = append([]byte(nil), x.payload.Body...) // fasthttp's buffer is larger, and wanted for the next request
	} else {
		x.payload.Body = ctx.Request.SwapBody(nil)
	}
	s.cors = corsLines(ctx)
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(net.Conn) { go s.run() })
}

// newRelay is the way of an exchange's answer, which streams.
func newRelay(x *exchange) *relay {
	s := &relay{x: x, meter: meter{x: x}}
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

// run carries a stream to its end and then serves the connection on.
func (s *relay) run() {
	x := s.x
	if s.contained() {
		x.d.serve(x.g)
		return
	}
	x.g.Close()
}

// contained is stream, and holds a panic of what comes after its end as well.
func (s *relay) contained() (keep bool) {
	x := s.x
	defer func() {
		if e := recover(); e != nil {
			x.d.log.Error("the end of a stream panicked", "request", x.asked.id, "panic", fmt.Sprint(e), "stack", string(debug.Stack()))
			keep = false
		}
	}()
	return s.stream()
}

// stream relays one stream, from as many workers as it takes. It reports
// whether the connection can carry another request.
func (s *relay) stream() (keep bool) {
	x := s.x
	defer x.finish()
	defer func() {
		if e := recover(); e != nil {
			x.d.log.Error("a stream panicked", "request", x.asked.id, "panic", fmt.Sprint(e), "stack", string(debug.Stack()))
			x.abandon()
			x.record.outcome, x.record.code = "failed", "internal"
			keep = false
		}
	}()
	var a wire.Answer
	for {
		f := x.open(&a)
		if x.booking.over() {
			return s.stopped()
		}
		if f != nil {
			return s.refuse(f)
		}
		if a.Status != 200 || !a.EventStream {
			if again, done := s.plain(&a); !again {
				return done
			}
			continue
		}
		err := s.relay(&a)
		if err == nil {
			return s.complete()
		}
		if again, keep := s.broke(err); !again {
			return keep
		}
	}
}

// stopped ends a stream that nobody waits for, or that was told to end.
func (s *relay) stopped() bool {
	x := s.x
	x.abandon()
	x.record.status = 499
	phase := "waiting"
	if s.answer.Events() > 0 {
		phase = "streaming"
	}
	f, outcome := x.parted(phase)
	if f != nil {
		s.refuse(f)
	}
	x.record.outcome = outcome
	return false
}

// plain passes on an answer that is no event stream: an error, mostly. While a
// stream is being resumed there is no place for one: another worker is tried.
func (s *relay) plain(a *wire.Answer) (again, keep bool) {
	x := s.x
	head := reply{headerText(a.ContentType), headerText(a.RetryAfter), headerText(a.Disposition)}
	status := a.Status
	body, rest, err := x.readAnswer(a, nil)
	if rest != nil && !s.started {
		s.started = true
		return false, x.passOn(rest, head, body, s.cors)
	}
	if rest != nil {
		err = errors.New("a long answer came in place of the rest of a stream")
	}
	if err == nil && s.forbidsFields(status, body) {
		return true, false
	}
	if err != nil || s.started {
		x.g.sent() // nothing of it will be
		if x.booking.over() {
			return false, s.stopped()
		}
		if err != nil {
			if _, f := x.broken(err, true, "broken_answer", "worker broke off an answer"); f != nil {
				return false, s.refuse(f)
			}
			return true, false
		}
		x.d.log.Warn("a worker would not go on with a stream", "request", x.asked.id, "worker", x.record.worker, "status", status)
		x.lost(x.judged(max(status, 400)), "broken_answer")
		if s.answer.Events() > 0 {
			return false, s.fail(surface.WorkerFailed(x.asked.pool.Name))
		}
		return true, false
	}
	x.d.held.Keep(x.asked.path, x.asked.owner, body, x.booking.Charge.Try())
	x.settle(status, body)
	x.record.status = status
	return false, s.whole(status, head, body)
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
			from = max(from, x.d.ledger.View(x.booking.worker.Load().Acct, now).ProgressAt)
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

// flush sends what an out buffer holds as one chunk.
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

// complete ends a stream that came whole, and reports whether the connection
// can go on.
func (s *relay) complete() bool {
	x := s.x
	s.meter.whole()
	how := x.judged(200)
	if x.record.resumes.Load() > 0 {
		x.d.metrics.Resumed(x.asked.pool.Name, x.record.resumeFor, "ok")
	}
	x.release(how)
	return s.terminate()
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
