package tokenizer

import (
	"math"
	"math/bits"
)

// mergeTable finds the merge of two neighbours: its rank (which merge was
// learned how early) and the token it gives. It is a hash table with open
// addressing, at most half full.
type mergeTable struct {
	slots []mergeSlot
	shift uint
}

type mergeSlot struct {
	pair     uint64 // left id << 32 | right id, plus 1; 0: free
	rank, id int32
}

const noRank = math.MaxInt32

func newMergeTable(n int) *mergeTable {
	log := max(bits.Len(uint(2*n)), 4)
	return &mergeTable{slots: make([]mergeSlot, 1<<log), shift: uint(64 - log)}
}

func pairOf(left, right int32) uint64 {
	return uint64(uint32(left))<<32 | uint64(uint32(right))
}

// home returns the slot at which the search for a pair begins.
func (t *mergeTable) home(pair uint64) uint64 {
	return (pair * 0x9E3779B97F4A7C15) >> t.shift
}

// add enters a merge. A pair that is there already takes the later rank, as
// in the library, whose table is a map filled in order.
func (t *mergeTable) add(left, right, rank, id int32) {
	pair := pairOf(left, right) + 1
	for i := t.home(pair - 1); ; i = (i + 1) & uint64(len(t.slots)-1) {
		if s := &t.slots[i]; s.pair == 0 || s.pair == pair {
			*s = mergeSlot{pair, rank, id}
			return
		}
	}
}

// find returns the rank and result of a merge, noRank if there is none.
func (t *mergeTable) find(left, right int32) (rank, id int32) {
	pair := pairOf(left, right)
	for i := t.home(pair); ; i = (i + 1) & uint64(len(t.slots)-1) {
		s := &t.slots[i]
		if s.pair == pair+1 {
			return s.rank, s.id
		}
		if s.pair == 0 {
			return noRank, 0
		}
	}
}

// shortPiece is the number of symbols up to which a scan for the next merge
// is quicker than a heap.
const shortPiece = 48

// mergeShort merges symbols in place and returns how many are left. It looks
// through all ranks for each merge.
func (t *mergeTable) mergeShort(ids []int32, sc *scratch) int {
	n := len(ids)
	if n < 2 {
		return n
	}
	if cap(sc.ranks) < n {
		sc.ranks = make([]int32, max(n, 2*shortPiece))
	}
	ranks := sc.ranks[:n-1] // ranks[i]: of the merge of ids[i] and ids[i+1]
	for i := range ranks {
		ranks[i], _ = t.find(ids[i], ids[i+1])
	}
	for {
		best, at := int32(noRank), -1
		for i, r := range ranks {
			if r < best {
				best, at = r, i
			}
		}
		if at < 0 {
			return n
		}
		_, ids[at] = t.find(ids[at], ids[at+1])
		copy(ids[at+1:], ids[at+2:n])
		copy(ranks[at:], ranks[at+1:])
		n--
		ranks = ranks[:n-1]
		if at > 0 {
			ranks[at-1], _ = t.find(ids[at-1], ids[at])
		}
		if at < n-1 {
			ranks[at], _ = t.find(ids[at], ids[at+1])
		}
	}
}

// symbol is one of a long piece's symbols, linked to its neighbours.
type symbol struct {
	id         int32 // -1: merged into the one before
	prev, next int32
}

// merge is a possible merge of the symbol at position at with its next.
type merge struct {
	rank, at    int32
	left, right int32
	id          int32
}

func (a merge) less(b merge) bool {
	return a.rank < b.rank || a.rank == b.rank && a.at < b.at
}

// mergeLong does what mergeShort does, in n log n steps: what a user can send
// as one piece has no bound but the request's.
func (t *mergeTable) mergeLong(ids []int32, sc *scratch) int {
	sc.symbols, sc.heap = sc.symbols[:0], sc.heap[:0]
	for i, id := range ids {
		sc.symbols = append(sc.symbols, symbol{id, int32(i) - 1, int32(i) + 1})
	}
	symbols := sc.symbols
	symbols[len(ids)-1].next = -1
	for i := range len(ids) - 1 {
		t.push(sc, int32(i))
	}
	for len(sc.heap) > 0 {
		m := pop(sc)
		left := &symbols[m.at]
		if left.id != m.left || left.next < 0 || symbols[left.next].id != m.right {
			continue // one of the two was merged since
		}
		right := &symbols[left.next]
		left.id, left.next = m.id, right.next
		right.id = -1
		if left.next >= 0 {
			symbols[left.next].prev = m.at
			t.push(sc, m.at)
		}
		if left.prev >= 0 {
			t.push(sc, left.prev)
		}
	}
	n := 0
	for i := int32(0); i >= 0; i = symbols[i].next {
		ids[n] = symbols[i].id
		n++
	}
	return n
}

// push adds the merge of the symbol at position at with its next, if any.
func (t *mergeTable) push(sc *scratch, at int32) {
	left := sc.symbols[at]
	right := sc.symbols[left.next]
	rank, id := t.find(left.id, right.id)
	if rank == noRank {
		return
	}
	h := append(sc.heap, merge{rank, at, left.id, right.id, id})
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].less(h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	sc.heap = h
}

// pop takes the next merge from the heap.
func pop(sc *scratch) merge {
	h := sc.heap
	top, n := h[0], len(h)-1
	h[0] = h[n]
	h = h[:n]
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && h[child+1].less(h[child]) {
			child++
		}
		if !h[child].less(h[i]) {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	sc.heap = h
	return top
}
