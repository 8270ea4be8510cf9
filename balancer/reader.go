package balancer

import (
	"io"

	"roundhouse/balancer/wire"
)

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
