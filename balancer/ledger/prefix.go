package ledger

import (
	"math/bits"
	"sync"
)

// PrefixTable remembers which workers have seen which prompt chunks: one table
// for all workers of a pool, of a fixed size, the least recently used
// forgotten first. It has its own lock; look-ups come before the ledger's.
//
// What a worker has of a chain, it has from its beginning: engines free a
// prompt from its end. A look-up therefore gallops to the end of what is known
// and halves its way back, instead of walking every chunk.
type PrefixTable struct {
	mu     sync.Mutex
	budget int
	words  int // of a slot's set of workers
	index  map[uint64]int32
	slots  []prefixSlot
	sets   []uint64 // words for each slot
	most   int      // slots
	head   int32    // most recently used
	tail   int32
	stamp  uint32
	shares []cachedShare // by worker
	left   []uint64
}

type prefixSlot struct {
	digest     uint64
	prev, next int32
	stamp      uint32 // when it was last used
}

// slotBytes is what one slot takes, its share of the index included and its set
// of workers not.
const slotBytes = 48

// NewPrefixTable returns a table that takes about so many bytes when full.
func NewPrefixTable(bytes int) *PrefixTable {
	t := &PrefixTable{budget: bytes, head: -1, tail: -1, index: map[uint64]int32{}}
	t.widen(1)
	return t
}

// widen makes room for so many words of workers in every slot. The table keeps
// its budget, so that it holds fewer chunks then; the oldest go.
func (t *PrefixTable) widen(words int) {
	old, oldWords := t.sets, t.words
	t.words, t.most = words, max(16, t.budget/(slotBytes+8*words))
	t.left = make([]uint64, words)
	if oldWords == 0 {
		return
	}
	slots := t.slots
	t.index, t.slots, t.sets = map[uint64]int32{}, nil, nil
	var order []int32
	for at := t.head; at >= 0 && len(order) < t.most; at = slots[at].next {
		order = append(order, at)
	}
	t.head, t.tail = -1, -1
	for i := len(order) - 1; i >= 0; i-- {
		from := order[i]
		at := t.slot(slots[from].digest)
		t.slots[at].stamp = slots[from].stamp
		copy(t.set(at), old[int(from)*oldWords:][:oldWords])
	}
}

func (t *PrefixTable) set(at int32) []uint64 { return t.sets[int(at)*t.words:][:t.words] }

// Match writes to hits, for each worker, how many of the digests it has seen
// from the first on.
func (t *PrefixTable) Match(digests []uint64, hits []int32) {
	clear(hits)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(digests) == 0 {
		return
	}
	for i := range t.left {
		t.left[i] = ^uint64(0)
	}
	// has reports whether a worker that is still left knows the first n digests.
	has := func(n int) bool {
		at, ok := t.index[digests[n-1]]
		if !ok {
			return false
		}
		for i, w := range t.set(at) {
			if w&t.left[i] != 0 {
				return true
			}
		}
		return false
	}
	most := len(digests)
	for most > 0 {
		// Workers are settled from the one that knows most to the one that knows least.
		low, high := 0, 1
		for high <= most && has(high) {
			low, high = high, 2*high
		}
		high = min(high, most+1)
		for low+1 < high {
			if mid := (low + high) / 2; has(mid) {
				low = mid
			} else {
				high = mid
			}
		}
		if low == 0 {
			return
		}
		for i, w := range t.set(t.index[digests[low-1]]) {
			for found := w & t.left[i]; found != 0; found &= found - 1 {
				if worker := 64*i + bits.TrailingZeros64(found); worker < len(hits) {
					hits[worker] = int32(low)
				}
			}
			t.left[i] &^= w
		}
		most = low - 1
	}
}

// Add notes that a worker now has the chunks.
func (t *PrefixTable) Add(worker int, digests []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if worker/64 >= t.words {
		t.widen(worker/64 + 1)
	}
	t.stamp++
	// From the last to the first, so that the first is used most recently and
	// a chain is forgotten from its end.
	for i := len(digests) - 1; i >= 0; i-- {
		at, ok := t.index[digests[i]]
		if !ok {
			at = t.slot(digests[i])
		}
		t.touch(at)
		t.slots[at].stamp = t.stamp
		set := t.set(at)
		if set[worker/64]&(1<<(worker%64)) == 0 {
			set[worker/64] |= 1 << (worker % 64)
			t.count(worker, digests[i])
		}
	}
}

// Drop notes that a worker has lost chunks.
func (t *PrefixTable) Drop(worker int, digests []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range digests {
		t.clear(worker, d)
	}
}

func (t *PrefixTable) clear(worker int, digest uint64) {
	if at, ok := t.index[digest]; ok && worker/64 < t.words {
		t.set(at)[worker/64] &^= 1 << (worker % 64)
	}
}

// Forget drops all that a worker has: its cache is empty.
func (t *PrefixTable) Forget(worker int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if worker < len(t.shares) {
		t.shares[worker].empty()
	}
	if worker/64 >= t.words {
		return
	}
	for at := range t.slots {
		t.set(int32(at))[worker/64] &^= 1 << (worker % 64)
	}
}

// slot takes a free slot, or the one least recently used.
func (t *PrefixTable) slot(digest uint64) int32 {
	var at int32
	if len(t.slots) < t.most {
		at = int32(len(t.slots))
		t.slots = append(t.slots, prefixSlot{digest: digest, prev: -1, next: -1})
		t.sets = append(t.sets, make([]uint64, t.words)...)
		t.link(at)
	} else {
		at = t.tail
		delete(t.index, t.slots[at].digest)
		t.slots[at].digest = digest
		clear(t.set(at))
		t.touch(at)
	}
	t.index[digest] = at
	return at
}

func (t *PrefixTable) touch(at int32) {
	if t.head == at {
		return
	}
	s := &t.slots[at]
	if s.prev >= 0 {
		t.slots[s.prev].next = s.next
	}
	if s.next >= 0 {
		t.slots[s.next].prev = s.prev
	}
	if t.tail == at {
		t.tail = s.prev
	}
	t.link(at)
}

func (t *PrefixTable) link(at int32) {
	s := &t.slots[at]
	s.prev, s.next = -1, t.head
	if t.head >= 0 {
		t.slots[t.head].prev = at
	}
	t.head = at
	if t.tail < 0 {
		t.tail = at
	}
}
