package balancer

import (
	"errors"
	"fmt"
	"io"
	"time"

	"roundhouse/balancer/wire"
)

// mostHeld is the longest answer without a stream that is held whole: a worker that
// dies before its end costs another try and nothing else. One that is longer, or that
// the door's memory has no room for, is passed on as it comes.
const mostHeld = 16 << 20

// passage is an answer that is passed on as it comes, for it is too long to be held.
type passage struct {
	x      *exchange
	r      reader
	chunks bool   // the client gets it in chunks
	tail   []byte // the end of what has come
}

// usageWithin is how far from its end an answer tells its usage.
const usageWithin = 2048

// passOn relays an answer that has come in part: held is its beginning, more the lines
// of its head that are not the worker's. It reports whether the connection can carry
// another request.
func (x *exchange) passOn(r *reader, head reply, held, more []byte) (keep bool) {
	x.record.status, x.record.first = r.a.Status, x.d.now()
	x.record.state.Store(phaseStreaming)
	x.d.held.keep(&x.asked, held, x.booking.charge.Try())
	length := int(r.a.Length)
	p := passage{x: x, r: *r, chunks: length < 0 && !x.asked.http10}
	if length < 0 && x.asked.http10 {
		x.close = true
	}
	err := x.g.send(x.head(make([]byte, 0, headRoom), head, length, more))
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
	if p.r.whole && !p.r.a.Close {
		x.booking.keep(x.record.whole)
	} else {
		x.booking.drop()
	}
	x.settle(r.a.Status, p.tail)
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
		if c.from == c.to {
			c.readIn(x.d.now(), time.Duration(x.v.set.Door.Limits.Idle))
			if err := c.fill(); err == io.EOF && p.r.openEnded() {
				return nil
			} else if err != nil {
				return err
			}
		}
		b, err := p.r.decode(c)
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
	if !p.chunks {
		if p.x.g.send(b) != nil {
			return errWriting
		}
		return nil
	}
	o := newOut()
	defer o.free()
	o.B = append(o.B, b...)
	if p.x.g.send(o.framed(true)) != nil {
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
func (e *errNoRoom) failure() *failure {
	if e.came > e.limit {
		return &failure{status: 502, typ: "api_error", code: "answer_too_long", message: e.Error()}
	}
	return &failure{status: 503, typ: "service_unavailable", code: "memory", reason: "memory", retryAfter: 1, message: e.Error()}
}

// rewrites reports whether the answer must be held whole, because it is changed.
func (x *exchange) rewrites() bool { return x.pass.WantsChunks() || x.asked.keepsName() }

// readAnswer reads an answer behind what stands in room, however long it takes while
// bytes come. Where it is too long to be held, rest is how the remainder is read.
func (x *exchange) readAnswer(a *wire.Answer, room []byte) (body []byte, rest *reader, err error) {
	c := x.booking.connection()
	if c == nil {
		return nil, nil, errGone
	}
	if a.Length < 0 || a.Length > int64(c.to-c.from) {
		c.readIn(x.d.now(), time.Duration(x.v.set.Door.Limits.Idle))
	}
	body, rest, err = x.gather(c, &reader{a: *a, left: a.Length}, room)
	if err != nil || rest != nil {
		return body, rest, err
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
func (x *exchange) gather(c *upConn, r *reader, dst []byte) (body []byte, rest *reader, err error) {
	was, fits := len(dst), max(cap(dst)-len(dst), bufSize)
	if r.a.Bodiless() {
		return dst, nil, nil
	}
	if n := r.a.Length; n >= 0 {
		if n > int64(fits) {
			if err = x.mayHold(n, n); err == errLong {
				return dst, r, nil
			}
		}
		if err == nil {
			dst, err = c.fixed(dst, int(n))
		}
		return dst, nil, err
	}
	for {
		if c.from == c.to {
			if err := c.fill(); err == io.EOF && r.openEnded() {
				return dst, nil, nil
			} else if err != nil {
				return dst, nil, errors.Join(io.ErrUnexpectedEOF, err)
			}
		}
		b, end := r.decode(c)
		dst = append(dst, b...)
		switch {
		case end == io.EOF:
			return dst, nil, nil
		case end != nil:
			return dst, nil, end
		case len(dst)-was > fits:
			came := len(dst) - was
			fits = came + pieceOf
			if err = x.mayHold(int64(fits), int64(came)); err == errLong {
				return dst, r, nil
			} else if err != nil {
				return dst, nil, err
			}
		}
	}
}

// errLong says that an answer is to be passed on as it comes.
var errLong = errors.New("the answer is too long to be held")

// mayHold books n bytes in all for an answer of which came bytes are known.
func (x *exchange) mayHold(n, came int64) error {
	g := x.g
	if !x.rewrites() {
		if came > mostHeld || !g.keep(n) {
			return errLong
		}
		return nil
	}
	if !g.keep(2 * n) { // it lies there twice while it is rewritten
		return &errNoRoom{came, g.d.memory.limit.Load()}
	}
	return nil
}

// keep books n bytes in all for an answer, until it was sent.
func (g *guard) keep(n int64) bool {
	more := n - g.outgoing
	if more > 0 && !g.d.book(more) {
		return false
	}
	g.outgoing = max(g.outgoing, n)
	return true
}

// sent gives back what an answer took that the client has, or will never have.
func (g *guard) sent() {
	g.d.memory.give(g.outgoing)
	g.outgoing = 0
}
