package cpu

import "sync/atomic"

// queue shares out the items of a stage as threads get to them, where items
// take unlike times. Which thread does an item changes no bit of it.
type queue struct {
	next atomic.Int64
	_    [56]byte
}

// take calls run for stretches of up to size items, until all n are done.
func (q *queue) take(n, size int, run func(first, last int)) {
	for {
		last := int(q.next.Add(int64(size)))
		if last-size >= n {
			return
		}
		run(last-size, min(last, n))
	}
}
