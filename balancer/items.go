package balancer

import (
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/wire"
)

// items are the pictures and sounds of a prompt. A worker that has seen one has
// its rows, whatever text it stood behind.
type items struct {
	places  []ledger.Item
	digests []uint64
	looks   []int32 // as Ask has them
}

// What an item is taken for where its worker has not yet told. It must not be
// learned: the doors of a fleet are to make the same digests.
const (
	itemPixels = 28 * 28 // of a picture that are a token
	itemTokens = 512     // of what has no known size
)

// mostLooked is how many items of a prompt are looked up; the first are.
const mostLooked = 64

// take notes the items that stand in the prompt, and returns how many times
// ChunkBytes their tokens are.
func (it *items) take(p *wire.Peek) (units int) {
	it.places = it.places[:0]
	for _, m := range p.Items {
		if m.From < p.Prompt.From || m.To > p.Prompt.To {
			continue
		}
		place := ledger.Item{From: m.From - p.Prompt.From, To: m.To - p.Prompt.From, Tokens: itemTokens}
		if m.Pixels > 0 {
			place.Tokens = max(m.Pixels/itemPixels, 1)
		}
		units += place.Units()
		it.places = append(it.places, place)
	}
	return units
}

// match counts for each worker the tokens of what it has not seen, of which per
// are ledger.ChunkBytes. bySlot is room for a number a slot.
func (it *items) match(t *ledger.PrefixTable, workers []*fleet.Worker, bySlot []int32, per float64) []int32 {
	if cap(it.looks) < len(workers) {
		it.looks = make([]int32, len(workers))
	}
	it.looks = it.looks[:len(workers)]
	clear(it.looks)
	for n := range it.digests[:min(len(it.digests), mostLooked)] {
		t.Match(it.digests[n:n+1], bySlot)
		tokens := int32(float64(it.places[n].Units()) * per)
		for i, w := range workers {
			if bySlot[w.Slot] == 0 {
				it.looks[i] += tokens
			}
		}
	}
	return it.looks
}
