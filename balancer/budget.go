package balancer

import "sync/atomic"

// budget bounds the bytes of all bodies that the door holds at once.
type budget struct {
	limit atomic.Int64
	used  atomic.Int64
}

// take books n bytes, or none where they do not fit.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.limit.Load() {
		b.used.Add(-n)
		return false
	}
	return true
}

// over is by how much n more bytes would pass the limit; not above zero where
// they fit.
func (b *budget) over(n int64) int64 { return b.used.Load() + n - b.limit.Load() }

func (b *budget) give(n int64) {
	if n != 0 && b.used.Add(-n) < 0 {
		panic("BUG: more memory was given back than was taken")
	}
}
