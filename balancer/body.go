package balancer

import (
	"math/bits"
	"sync"
)

// The bodies that are lent: powers of two from 32 KiB to 1 MiB. A longer one is
// made to measure, and a shorter one lies in the buffer that it was read into.
const (
	leastBody = 15
	mostBody  = 20
)

// bodies are lent for request bodies that outgrow a read, by size.
var bodies [mostBody - leastBody + 1]sync.Pool

// lendBody returns n bytes for a body.
func lendBody(n int64) *[]byte {
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

// giveBody takes back what was lent.
func giveBody(b *[]byte) {
	if b == nil {
		return
	}
	if c := bits.Len(uint(cap(*b) - 1)); c >= leastBody && c <= mostBody && cap(*b) == 1<<c {
		bodies[c-leastBody].Put(b)
	}
}
