package balancer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/extend"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/resume"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// unary serves a request whose answer does not stream: unless it is very long, it is
// held whole before the client sees a byte, so that a worker's death costs another try
// and nothing else.
func (x *exchange) unary(out replier) {
	defer x.finish()
	a := &x.came
	for {
		f := x.open(a)
		if x.booking.over() {
			x.abandon()
			x.record.status = 499
			f, outcome := x.parted("waiting")
			out.end(x, f)
			x.record.outcome = outcome
			return
		}
		if f != nil {
			out.refuse(x, f)
			return
		}
		head := reply{headerText(a.ContentType), headerText(a.RetryAfter), headerText(a.Disposition)}
		room := out.room()
		whole, rest, err := x.readAnswer(a, room)
		if rest != nil {
			p := passage{x: x, r: *rest}
			out.passed(p.run(head, whole[len(room):], out.lines()))
			return
		}
		if err == nil {
			x.d.responses.Keep(x.asked.path, x.asked.owner, whole[len(room):], x.booking.Charge.Try())
			x.settle(a.Status, whole[len(room):])
			if x.pass.WantsChunks() {
				body, f := rewrite(whole[len(room):], x.pass)
				if f != nil {
					out.refuse(x, f)
					return
				}
				whole = append(whole[:len(room)], body...)
			}
			if x.asked.keepsName() {
				whole = append(whole[:len(room):len(room)], resume.Rename(whole[len(room):], x.asked.model, x.asked.peek.Model)...)
			}
			x.record.status = a.Status
			x.logged.answered(whole[len(room):])
			out.reply(x, head, whole)
			return
		}
		if x.booking.over() {
			continue
		}
		x.g.sent() // nothing of it will be
		if full, ok := errors.AsType[*errNoRoom](err); ok {
			x.booking.drop()
			x.release(ledger.Neutral)
			out.refuse(x, full.failure())
			return
		}
		if _, f := x.broken(err, true, "broken_answer", "worker broke off an answer"); f != nil {
			out.refuse(x, f)
			return
		}
	}
}

// settle ends the charge of an answer that came whole; body may be its end alone.
func (x *exchange) settle(status int, body []byte) {
	x.record.began(status, x.record.whole)
	how := x.booking.judged(x.d.ledger, status, x.d.now())
	if how == ledger.Served && x.asked.kind != surface.Stored { // what is stored was counted when it was generated
		tail := body[max(0, len(body)-usageWithin):]
		x.record.usage.Read(lastUsage(tail))
		if x.record.usage.Known {
			x.d.ledger.Settle(&x.booking.Charge, x.record.usage.Prompt, x.record.usage.Cached)
			x.booking.worker.Load().Hits.Tells(x.record.usage.Cached)
			x.d.ledger.Grow(&x.booking.Charge, x.record.usage.Generated)
			x.asked.pool.Learn(x.asked.model).Learn(x.asked.size(), x.record.usage.Prompt, x.record.usage.Generated)
		}
		x.booking.computed(x.asked.pool)
		if !x.booking.own {
			x.booking.remember(x.asked.pool)
		}
	}
	x.releaseAt(how, x.record.whole)
}

// lastUsage is the end of an answer from its last field of that name. Searches forward
// are many times as fast as bytes.LastIndex.
func lastUsage(tail []byte) (found []byte) {
	for name := []byte(`"usage"`); ; {
		at := bytes.Index(tail, name)
		if at < 0 {
			return found
		}
		found = tail[at:]
		tail = found[len(name):]
	}
}

// readAnswer reads an answer behind what stands in room, however long it takes while
// bytes come. Where it is too long to be held, rest is how the remainder is read.
func (x *exchange) readAnswer(a *wire.Answer, room []byte) (body []byte, rest *conn.Reader, err error) {
	c := x.booking.connection()
	if c == nil {
		return nil, nil, errGone
	}
	if a.Length < 0 || a.Length > int64(c.Buffered()) {
		c.ReadIn(x.d.now(), time.Duration(x.v.set.Door.Limits.Idle))
	}
	body, rest, err = x.gather(c, a, room)
	if err != nil || rest != nil {
		return body, rest, err
	}
	if a.Status == 200 && !x.booking.own && x.asked.kind != surface.Stored && resume.Aborted(apiOf(&x.asked), body[len(room):], len(x.booking.erred) > 0) {
		return nil, nil, resume.ErrEvent
	}
	x.record.whole = x.d.now()
	if a.Close || a.Length < 0 && !a.Chunked && !a.Bodiless() {
		x.booking.drop()
	} else {
		x.booking.keep(x.record.whole)
	}
	return body, nil, nil
}

// gather reads the body of an answer behind dst.
func (x *exchange) gather(c *conn.Conn, a *wire.Answer, dst []byte) (body []byte, rest *conn.Reader, err error) {
	was, fits := len(dst), max(cap(dst)-len(dst), conn.BufSize)
	if a.Bodiless() {
		return dst, nil, nil
	}
	if n := a.Length; n >= 0 {
		if n > int64(fits) {
			if err = x.bookAnswer(n, n); err == errLong {
				return dst, conn.NewReader(a), nil
			}
		}
		if err == nil {
			dst, err = c.Fixed(dst, int(n))
		}
		return dst, nil, err
	}
	r := conn.NewReader(a)
	for {
		if c.Buffered() == 0 {
			if err := c.Fill(); err == io.EOF && r.OpenEnded() {
				return dst, nil, nil
			} else if err != nil {
				return dst, nil, errors.Join(io.ErrUnexpectedEOF, err)
			}
		}
		b, end := r.Decode(c)
		dst = append(dst, b...)
		switch {
		case end == io.EOF:
			return dst, nil, nil
		case end != nil:
			return dst, nil, end
		case len(dst)-was > fits:
			came := len(dst) - was
			fits = came + conn.Piece
			if err = x.bookAnswer(int64(fits), int64(came)); err == errLong {
				return dst, r, nil
			} else if err != nil {
				return dst, nil, err
			}
		}
	}
}

// errLong says that an answer is to be passed on as it comes.
var errLong = errors.New("the answer is too long to be held")

// bookAnswer books n bytes in all for an answer of which came bytes are known.
func (x *exchange) bookAnswer(n, came int64) error {
	g := x.g
	if !x.pass.WantsChunks() && !x.asked.keepsName() { // else it is changed, and must be held whole
		if came > mostBuffered || !g.keep(n) {
			return errLong
		}
		return nil
	}
	if !g.keep(2 * n) { // it lies there twice while it is rewritten
		return &errNoRoom{came, g.d.memory.Limit.Load()}
	}
	return nil
}

// mostBuffered is the longest answer without a stream that is held whole: a worker that
// dies before its end costs another try and nothing else. One that is longer, or that
// the door's memory has no room for, is passed on as it comes.
const mostBuffered = 16 << 20

// passage is an answer that is passed on as it comes, for it is too long to be held.
type passage struct {
	x      *exchange
	r      conn.Reader
	chunks bool   // the client gets it in chunks
	tail   []byte // the end of what has come
}

// usageWithin is how far from its end an answer tells its usage.
const usageWithin = 2048

// run relays an answer that has come in part: held is its beginning, more the lines
// of its head that are not the worker's. It reports whether the connection can carry
// another request.
func (p *passage) run(head reply, held, more []byte) (keep bool) {
	x, r := p.x, &p.r
	x.record.status = r.A.Status
	x.record.began(r.A.Status, x.d.now())
	x.record.state.Store(phaseStreaming)
	x.d.responses.Keep(x.asked.path, x.asked.owner, held, x.booking.Charge.Try())
	length := int(r.A.Length)
	p.chunks = length < 0 && !x.asked.http10
	if length < 0 && x.asked.http10 {
		x.close = true
	}
	err := x.g.send(x.head(make([]byte, 0, conn.HeadRoom), head, length, more))
	if err != nil {
		return p.left()
	}
	if err = p.send(held); err == nil {
		err = p.carry()
	}
	switch {
	case err == errWriting || x.booking.over():
		return p.left()
	case err != nil:
		_, _ = x.broken(err, true, "broken_answer", "worker broke off an answer that was passed on")
		x.record.outcome = "failed"
		return false // without its end: the client must not take it for whole
	}
	x.record.whole = x.d.now()
	if r.Reusable() {
		x.booking.keep(x.record.whole)
	} else {
		x.booking.drop()
	}
	x.settle(r.A.Status, p.tail)
	if p.chunks && x.g.send([]byte(lastChunk)) != nil {
		return false
	}
	return !x.close
}

// carry relays what comes until the body is over.
func (p *passage) carry() error {
	x := p.x
	c := x.booking.connection()
	if c == nil {
		return errGone
	}
	for {
		if c.Buffered() == 0 {
			c.ReadIn(x.d.now(), time.Duration(x.v.set.Door.Limits.Idle))
			if err := c.Fill(); err == io.EOF && p.r.OpenEnded() {
				return nil
			} else if err != nil {
				return err
			}
		}
		b, err := p.r.Decode(c)
		if werr := p.send(b); werr != nil {
			return werr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// send passes a part of the body on.
func (p *passage) send(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if p.tail = append(p.tail, b[max(0, len(b)-usageWithin):]...); len(p.tail) > 2*usageWithin {
		p.tail = append(p.tail[:0], p.tail[len(p.tail)-usageWithin:]...)
	}
	p.x.logged.answered(b)
	if !p.chunks {
		if p.x.g.send(b) != nil {
			return errWriting
		}
		return nil
	}
	o := conn.LendOut()
	defer o.Free()
	o.B = append(o.B, b...)
	if p.x.g.send(o.Framed(true)) != nil {
		return errWriting
	}
	return nil
}

// left ends a passage whose client has left, or which was told to end.
func (p *passage) left() (keep bool) {
	x := p.x
	if !x.booking.over() {
		x.booking.cancel(causeClient)
	}
	x.abandon()
	x.record.status = 499
	_, x.record.outcome = x.parted("streaming")
	return false
}

// errNoRoom says that an answer which must be held whole does not fit.
type errNoRoom struct {
	came  int64 // what is known of its length
	limit int64
}

// Error implements error.
func (e *errNoRoom) Error() string {
	return fmt.Sprintf("an answer of at least %d bytes, which a filter or an alias rewrites and which therefore must be held whole, does not fit into what is free of door.memory (%d bytes)", e.came, e.limit)
}

// failure is what the client is told.
func (e *errNoRoom) failure() *surface.Failure {
	if e.came > e.limit {
		return &surface.Failure{Status: 502, Type: "api_error", Code: "answer_too_long", Message: e.Error()}
	}
	return &surface.Failure{Status: 503, Type: "service_unavailable", Code: "memory", Reason: "memory", RetryAfter: 1, Message: e.Error()}
}

// replier writes an answer that does not stream. fasthttp does it where it has
// read the request, the connection itself where the door has.
type replier interface {
	room() []byte                             // what an answer is read behind
	reply(x *exchange, r reply, whole []byte) // whole begins with room
	refuse(x *exchange, f *surface.Failure)
	lines() []byte                       // of a head, that are not the worker's
	passed(keep bool)                    // the client has its answer already; keep: the connection goes on
	end(x *exchange, f *surface.Failure) // and the connection; f is nil where the client has left
}

// rewrite lets the filters rewrite an answer that does not stream.
func rewrite(body []byte, pass *extend.Pass) ([]byte, *surface.Failure) {
	out, refusal := pass.Chunk(body, true)
	if refusal != nil {
		return nil, filterFailed
	}
	return out, nil
}
