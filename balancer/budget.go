package balancer

import "sync/atomic"

// budget bounds the bytes that the door holds of requests and answers at once.
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

// spareRoom reports whether n more bytes leave a quarter free, which is kept for what
// cannot be given up again.
func (b *budget) spareRoom(n int64) bool { return b.over(n) <= -b.limit.Load()/4 }

func (b *budget) give(n int64) {
	if n != 0 && b.used.Add(-n) < 0 {
		panic("BUG: more memory was given back than was taken")
	}
}
