package balancer

import (
	"fmt"
	"io"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/surface"
)

// mostHeld is the longest answer without a stream that is held whole: a worker that
// dies before its end costs another try and nothing else. One that is longer, or that
// the door's memory has no room for, is passed on as it comes.
const mostHeld = 16 << 20

// passage is an answer that is passed on as it comes, for it is too long to be held.
type passage struct {
	x      *exchange
	r      conn.Reader
	chunks bool   // the client gets it in chunks
	tail   []byte // the end of what has come
}

// usageWithin is how far from its end an answer tells its usage.
const usageWithin = 2048

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
	g.d.memory.Give(g.outgoing)
	g.outgoing = 0
}
