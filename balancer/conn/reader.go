package conn

import (
	"io"

	"roundhouse/balancer/wire"
)

// Reader takes the payload out of an answer's body.
type Reader struct {
	A     wire.Answer // the head
	ch    wire.Chunks
	left  int64
	Whole bool
}

// NewReader reads the body behind a head.
func NewReader(a *wire.Answer) *Reader { return &Reader{A: *a, left: a.Length} }

// Reusable reports whether the connection can carry another request.
func (r *Reader) Reusable() bool { return r.Whole && !r.A.Close }

// OpenEnded reports whether the end of the connection is how the body ends.
func (r *Reader) OpenEnded() bool { return !r.A.Chunked && r.A.Length < 0 }

// Decode consumes what the connection has read; io.EOF says that the body is
// over.
func (r *Reader) Decode(c *Conn) ([]byte, error) {
	b := c.rest[c.from:c.to]
	if r.A.Chunked {
		n, used, err := r.ch.Decode(b)
		c.from += used
		if err == nil && r.ch.Done() {
			r.Whole, err = true, io.EOF
		}
		return b[:n], err
	}
	if r.A.Length >= 0 {
		n := int(min(int64(len(b)), r.left))
		c.from += n
		if r.left -= int64(n); r.left == 0 {
			r.Whole = true
			return b[:n], io.EOF
		}
		return b[:n], nil
	}
	c.from = c.to
	return b, nil
}
