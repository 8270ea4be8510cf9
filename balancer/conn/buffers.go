package conn

import (
	"math/bits"
	"sync"

	"roundhouse/balancer/resume"
)

// BufSize is what one read takes from a socket at most.
const BufSize = 16 << 10

// buffers are lent for the time between a read and the next wait.
var buffers = sync.Pool{New: func() any { return new([BufSize]byte) }}

// Drop takes back what receive has lent.
func Drop(buf *[BufSize]byte) {
	if buf != nil {
		buffers.Put(buf)
	}
}

// outs are lent for building what one write carries to a client.
var outs = sync.Pool{New: func() any { return &Out{Out: resume.Out{B: make([]byte, 0, BufSize+4096)}} }}

// heads are lent for building the head of a request.
var heads = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// LendHead returns memory for the head of a request.
func LendHead() *[]byte { return heads.Get().(*[]byte) }

// GiveHead takes back memory of LendHead.
func GiveHead(b *[]byte) {
	*b = (*b)[:0]
	heads.Put(b)
}

// The bodies that are lent: powers of two from 32 KiB to 1 MiB. A longer one is
// made to measure, and a shorter one lies in the buffer that it was read into.
const (
	leastBody = 15
	mostBody  = 20
)

// Piece is how much of a body is booked before it comes: a next piece is four
// times what has come, so that a client holds no memory by what it only announces.
const Piece = 1 << mostBody

// bodies are lent for request bodies that outgrow a read, by size.
var bodies [mostBody - leastBody + 1]sync.Pool

// LendBody returns n bytes for a body.
func LendBody(n int64) *[]byte {
	c := max(leastBody, bits.Len64(uint64(n-1)))
	if c > mostBody {
		b := make([]byte, n)
		return &b
	}
	b, _ := bodies[c-leastBody].Get().(*[]byte)
	if b == nil {
		made := make([]byte, 1<<c)
		b = &made
	}
	*b = (*b)[:n]
	return b
}

// GiveBody takes back what was lent.
func GiveBody(b *[]byte) {
	if b == nil {
		return
	}
	if c := bits.Len(uint(cap(*b) - 1)); c >= leastBody && c <= mostBody && cap(*b) == 1<<c {
		bodies[c-leastBody].Put(b)
	}
}
