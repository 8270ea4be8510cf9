package memory

import "sync/atomic"

// budget bounds the bytes that the door holds of requests and answers at once.
type budget struct {
	Limit atomic.Int64
	used  atomic.Int64
}

// Take books n bytes, or none where they do not fit.
func (b *budget) Take(n int64) bool {
	if b.used.Add(n) > b.Limit.Load() {
		b.used.Add(-n)
		return false
	}
	return true
}

// Over is by how much n more bytes would pass the limit; not above zero where
// they fit.
func (b *budget) Over(n int64) int64 { return b.used.Load() + n - b.Limit.Load() }

// SpareRoom reports whether n more bytes leave a quarter free, which is kept for what
// cannot be given up again.
func (b *budget) SpareRoom(n int64) bool { return b.Over(n) <= -b.Limit.Load()/4 }

// Give returns n bytes.
func (b *budget) Give(n int64) {
	if n != 0 && b.used.Add(-n) < 0 {
		panic("BUG: more memory was given back than was taken")
	}
}
