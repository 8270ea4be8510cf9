package ledger

import (
	"encoding/binary"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// ChunkBytes is how much of a canonical prompt one digest stands for.
const ChunkBytes = 1024

// maxPrefixWorkers is how many workers one table can tell apart.
const maxPrefixWorkers = 64

// Digests appends the chained digests of a prompt's whole chunks to dst. Equal
// digests stand for equal prompts up to and with that chunk, under the salt.
func Digests(dst []uint64, salt uint64, prompt []byte) []uint64 {
	var link [8]byte
	h := xxhash.New()
	prev := salt
	for len(prompt) >= ChunkBytes {
		h.Reset()
		binary.LittleEndian.PutUint64(link[:], prev)
		h.Write(link[:])
		h.Write(prompt[:ChunkBytes])
		prev = h.Sum64()
		dst = append(dst, prev)
		prompt = prompt[ChunkBytes:]
	}
	return dst
}

// PrefixTable remembers which workers have seen which prompt chunks: one table
// for all workers of a pool, of a fixed size, the least recently used
// forgotten first. It has its own lock; look-ups come before the ledger's.
type PrefixTable struct {
	mu    sync.Mutex
	index map[uint64]int32
	slots []prefixSlot
	head  int32 // most recently used
	tail  int32
}

type prefixSlot struct {
	digest     uint64
	workers    uint64 // a bit for each
	prev, next int32
}

// slotBytes is what one slot takes, its share of the index included.
const slotBytes = 48

// NewPrefixTable returns a table that takes about so many bytes when full.
func NewPrefixTable(bytes int) *PrefixTable {
	return &PrefixTable{index: map[uint64]int32{}, slots: make([]prefixSlot, 0, max(16, bytes/slotBytes)), head: -1, tail: -1}
}

// Match writes to hits, for each worker, how many of the digests it has seen
// from the first on without a gap.
func (t *PrefixTable) Match(digests []uint64, hits []int32) {
	clear(hits)
	t.mu.Lock()
	defer t.mu.Unlock()
	var last uint64 = ^uint64(0)
	for i, d := range digests {
		at, ok := t.index[d]
		if !ok {
			break
		}
		set := t.slots[at].workers & last
		if set == 0 {
			break
		}
		for w := range hits {
			if w < maxPrefixWorkers && set&(1<<w) != 0 {
				hits[w] = int32(i + 1)
			}
		}
		last = set
	}
}

// Add notes that a worker now has the chunks.
func (t *PrefixTable) Add(worker int, digests []uint64) {
	if worker >= maxPrefixWorkers {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// From the last to the first, so that the first is used most recently and
	// a chain is forgotten from its end.
	for i := len(digests) - 1; i >= 0; i-- {
		at, ok := t.index[digests[i]]
		if !ok {
			at = t.slot(digests[i])
		}
		t.slots[at].workers |= 1 << worker
		t.touch(at)
	}
}

// Drop notes that a worker has lost chunks.
func (t *PrefixTable) Drop(worker int, digests []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range digests {
		if at, ok := t.index[d]; ok && worker < maxPrefixWorkers {
			t.slots[at].workers &^= 1 << worker
		}
	}
}

// Forget drops all that a worker has: its cache is empty.
func (t *PrefixTable) Forget(worker int) {
	if worker >= maxPrefixWorkers {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.slots {
		t.slots[i].workers &^= 1 << worker
	}
}

// slot takes a free slot, or the one least recently used.
func (t *PrefixTable) slot(digest uint64) int32 {
	var at int32
	if len(t.slots) < cap(t.slots) {
		at = int32(len(t.slots))
		t.slots = append(t.slots, prefixSlot{digest: digest, prev: -1, next: -1})
		t.link(at)
	} else {
		at = t.tail
		delete(t.index, t.slots[at].digest)
		t.slots[at].digest, t.slots[at].workers = digest, 0
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
