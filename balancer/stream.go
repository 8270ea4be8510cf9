package balancer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"roundhouse/balancer/wire"
)

// stream is the state of an answer that streams. It outlives the workers that
// feed it.
type stream struct {
	x       *exchange
	ids     bool // token ids and usage are asked for, and cut out of what the client sees
	plain   bool // on a foreign worker, token ids are enough to go on
	started bool // the head of the answer was written
	between bool // the client stands between two events
	resumed bool
	cors    []byte

	front   []byte // the head, until the first write
	closing bool   // the worker's body is over
	closed  bool   // the last chunk was written

	partial []byte // an event that is not whole yet
	last    int64  // when the last event was relayed

	id      string
	created int64
	prompt  []int32 // the prompt's token ids, from a worker that says them
	tokens  []int32 // the answer's token ids so far
	text    []byte  // what was relayed of a stream that can only be replayed
	events  int64   // with content
	before  int64   // events when the last worker began
	ended   bool    // a finish_reason was relayed
	done    bool    // [DONE] was relayed
	skip    *replay // of what the client has already, at a new worker
	broken  error   // why the worker's part cannot go on
	renamed bool    // the events are another answer's, under the id that the client knows
	alt     *alternative

	back      heldBack
	splits    bool // the pool parts reasoning from the answer
	answering bool // text of the answer, not of its reasoning, was relayed
}

// The errors that end one worker's part of a stream.
var (
	errWriting = errors.New("the client cannot be written to")
	errCut     = errors.New("the worker's stream broke off")
	errIdle    = errors.New("the worker was silent for too long")
)

// writeWithin bounds one write to a client.
const writeWithin = 30 * time.Second

// hijack takes the connection out of fasthttp and runs the stream in a
// goroutine of its own, which holds nothing of fasthttp's.
func (x *exchange) hijack(ctx *fasthttp.RequestCtx) {
	if len(x.payload.body) <= bufSize {
		x.payload.body = append([]byte(nil), x.payload.body...) // fasthttp's buffer is larger, and wanted for the next request
	} else {
		x.payload.body = ctx.Request.SwapBody(nil)
	}
	x.openStream()
	if h := &ctx.Response.Header; len(x.v.set.Door.CORS.Origins) > 0 {
		for _, name := range [...]string{"access-control-allow-origin", "vary", "access-control-expose-headers"} {
			if v := h.Peek(name); len(v) > 0 {
				x.s.cors = fmt.Appendf(x.s.cors, "%s: %s\r\n", name, v)
			}
		}
	}
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(net.Conn) { go x.run() })
}

// openStream makes the state of an answer that streams.
func (x *exchange) openStream() {
	x.s = &stream{x: x, between: true}
	x.s.ids = x.resumable()
	x.s.plain = x.s.ids && x.plainAsked() && x.bounded()
	x.s.splits = *x.asked.pool.end.Load() != ""
	x.s.watchStops()
}

// run carries a stream to its end and then serves the connection on.
func (x *exchange) run() {
	if x.contained() {
		x.d.serve(x.g)
		return
	}
	x.g.Close()
}

// contained is stream, and holds a panic of what comes after its end as well.
func (x *exchange) contained() (keep bool) {
	defer func() {
		if e := recover(); e != nil {
			x.d.log.Error("the end of a stream panicked", "request", x.asked.id, "panic", fmt.Sprint(e), "stack", string(debug.Stack()))
			keep = false
		}
	}()
	return x.stream()
}

// stream relays one stream, from as many workers as it takes. It reports
// whether the connection can carry another request.
func (x *exchange) stream() (keep bool) {
	defer x.finish()
	defer func() {
		if e := recover(); e != nil {
			x.d.log.Error("a stream panicked", "request", x.asked.id, "panic", fmt.Sprint(e), "stack", string(debug.Stack()))
			x.abandon()
			x.record.outcome = "failed"
			keep = false
		}
	}()
	var a wire.Answer
	for {
		f := x.open(&a)
		if x.booking.over() {
			return x.stopped()
		}
		if f != nil {
			return x.s.refuse(f)
		}
		if a.Status != 200 || !a.EventStream {
			if again, done := x.plain(&a); !again {
				return done
			}
			continue
		}
		err := x.s.relay(&a)
		if err == nil {
			return x.s.complete()
		}
		if again, keep := x.broke(err); !again {
			return keep
		}
	}
}

// stopped ends a stream that nobody waits for, or that was told to end.
func (x *exchange) stopped() bool {
	x.abandon()
	x.record.status = 499
	phase := "waiting"
	if x.s.events > 0 {
		phase = "streaming"
	}
	f, outcome := x.parted(phase)
	if f != nil {
		x.s.refuse(f)
	}
	x.record.outcome = outcome
	return false
}

// plain passes on an answer that is no event stream: an error, mostly. While a
// stream is being resumed there is no place for one: another worker is tried.
func (x *exchange) plain(a *wire.Answer) (again, keep bool) {
	ctype, after := headerText(a.ContentType), headerText(a.RetryAfter)
	status := a.Status
	body, err := x.readAnswer(a, nil)
	if err != nil || x.s.started {
		if x.booking.over() {
			return false, x.stopped()
		}
		if err != nil {
			if _, f := x.broken(err, "broken_answer", "worker broke off an answer"); f != nil {
				return false, x.s.refuse(f)
			}
			return true, false
		}
		x.d.log.Warn("a worker would not go on with a stream", "request", x.asked.id, "worker", x.booking.worker.Load().id, "status", status)
		x.lost(x.judged(max(status, 400)), "broken_answer")
		if x.s.events > 0 {
			return false, x.s.fail(workerFailed(x.asked.pool.name))
		}
		return true, false
	}
	x.settle(status, body)
	x.record.status = status
	return false, x.s.whole(status, ctype, after, body)
}

// broke decides what follows when a worker's part of a stream has ended
// badly. It reports whether the stream goes on elsewhere, and where it does not,
// whether the connection can carry another request.
func (x *exchange) broke(err error) (again, keep bool) {
	s := x.s
	if err == errFiltered {
		return false, s.fail(filterFailed)
	}
	if err == errWriting && !x.booking.over() {
		x.booking.cancel(causeClient)
	}
	if x.booking.over() {
		return false, x.stopped()
	}
	word := "died"
	if errors.Is(err, errIdle) {
		word = "hung"
	}
	if s.events > s.before {
		// This worker did carry the stream on: the others may be asked again.
		x.booking.tried, x.booking.deaths = x.booking.tried[:0], 0
		s.before = s.events
	}
	why, ended := x.broken(err, word, "a worker's stream broke")
	s.partial, s.broken = nil, nil
	if errors.Is(err, errDiffers) {
		x.d.metrics.resumes.WithLabelValues(x.asked.pool.name, x.record.resumeFor, "failed").Inc()
		return false, s.fail(workerFailed(x.asked.pool.name))
	}
	if ended != nil && !s.ended {
		return false, s.refuse(ended)
	}
	if s.events == 0 && !s.ended {
		return true, false // nothing was relayed: it begins anew
	}
	if s.ended {
		return false, s.closeEnded()
	}
	if ok := s.prepareResume(); !ok {
		x.d.metrics.resumes.WithLabelValues(x.asked.pool.name, why, "impossible").Inc()
		return false, s.fail(workerFailed(x.asked.pool.name))
	}
	x.record.resumes++
	x.record.resumeFor = why
	return true, false
}

// relay passes on a worker's events until the stream ends or breaks.
func (s *stream) relay(a *wire.Answer) error {
	x := s.x
	c := x.booking.connection()
	if c == nil {
		return errGone
	}
	if !s.started {
		s.head()
	}
	if s.front != nil && c.to == c.from {
		// Nothing has come behind the worker's head yet, and it may be long.
		if err := s.write(nil); err != nil {
			return err
		}
	}
	r := reader{a: *a, left: a.Length}
	for {
		var b []byte
		var err error
		if c.to > c.from {
			b, err = r.decode(c)
		} else if err = s.await(c); err == nil {
			continue
		}
		s.closing = err == io.EOF && r.whole
		if len(b) > 0 {
			if werr := s.pass(b); werr != nil {
				return werr
			}
		}
		if s.broken != nil {
			return s.broken
		}
		if err == io.EOF {
			if s.done || s.ended && (r.whole || r.openEnded()) {
				return s.finishUpstream(&r)
			}
			return errCut
		}
		if err != nil {
			return err
		}
	}
}

// reader takes the payload out of an answer's body.
type reader struct {
	a     wire.Answer
	ch    wire.Chunks
	left  int64
	whole bool
}

// openEnded reports whether the end of the connection is how the body ends.
func (r *reader) openEnded() bool { return !r.a.Chunked && r.a.Length < 0 }

// decode consumes what the connection has read; io.EOF says that the body is
// over.
func (r *reader) decode(c *upConn) ([]byte, error) {
	b := c.rest[c.from:c.to]
	if r.a.Chunked {
		n, used, err := r.ch.Decode(b)
		c.from += used
		if err == nil && r.ch.Done() {
			r.whole, err = true, io.EOF
		}
		return b[:n], err
	}
	if r.a.Length >= 0 {
		n := int(min(int64(len(b)), r.left))
		c.from += n
		if r.left -= int64(n); r.left == 0 {
			r.whole = true
			return b[:n], io.EOF
		}
		return b[:n], nil
	}
	c.from = c.to
	return b, nil
}

// finishUpstream keeps or closes the connection of a stream that came whole.
func (s *stream) finishUpstream(r *reader) error {
	if r.whole && !r.a.Close {
		s.x.booking.keep(s.x.d.now())
	} else {
		s.x.booking.drop()
	}
	return nil
}

// await waits for the worker's next bytes, and keeps the client's connection
// alive meanwhile.
func (s *stream) await(c *upConn) error {
	x := s.x
	now := x.d.now()
	from := now
	for {
		c.readIn(now, x.d.step)
		err := c.fill()
		if err == nil {
			return nil
		}
		if !timedOut(err) {
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
		if s.events == 0 {
			// A long prefill is no hang while the worker makes progress.
			limit = int64(time.Duration(x.v.set.Door.Limits.FirstByte))
			from = max(from, x.d.ledger.View(x.booking.worker.Load().acct, now).ProgressAt)
		}
		if now-from > limit {
			return errIdle
		}
	}
}

// heartbeat writes a comment line between two events. It has no empty line
// behind it: some clients take that for an event.
func (s *stream) heartbeat() bool {
	if !s.started || !s.between {
		return true
	}
	return s.write([]byte(": heartbeat\n")) == nil
}

// head prepares the head of the answer; it leaves with the first bytes.
func (s *stream) head() {
	s.started = true
	x := s.x
	x.record.status = 200
	x.record.state.Store(phaseStreaming)
	b := make([]byte, 0, 512)
	b = append(b, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\n"...)
	b = append(b, s.cors...)
	b = x.marks(b)
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
func (s *stream) write(payload []byte) error {
	o := newOut()
	defer o.free()
	o.b = append(o.b, payload...)
	return s.flush(o)
}

// flush sends what an out buffer holds as one chunk.
func (s *stream) flush(o *outBuf) error {
	b := o.framed(!s.x.asked.http10)
	if s.closing && (s.done || s.ended) && s.broken == nil && !s.x.asked.http10 && b != nil {
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
func (s *stream) complete() bool {
	x := s.x
	if x.record.usage.known {
		x.d.ledger.Settle(&x.booking.charge, x.record.usage.prompt, x.record.usage.cached)
		x.booking.worker.Load().hits.tells(x.record.usage.cached)
		x.asked.pool.learn(x.asked.model).Learn(x.asked.size(), x.record.usage.prompt, x.record.usage.generated)
	}
	x.remember()
	how := x.judged(200)
	if x.record.resumes > 0 {
		x.d.metrics.resumes.WithLabelValues(x.asked.pool.name, x.record.resumeFor, "ok").Inc()
	}
	x.release(how)
	return s.terminate()
}

// lastChunk ends a chunked body.
const lastChunk = "0\r\n\r\n"

// terminate writes the end of the chunked body.
func (s *stream) terminate() bool {
	x := s.x
	if !x.asked.http10 && !s.closed {
		if x.g.send([]byte(lastChunk)) != nil {
			return false
		}
	}
	return !x.close
}
