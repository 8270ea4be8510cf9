package tokenizer

import (
	"hash/maphash"
	"sync/atomic"
)

// wordCache remembers the tokens of pieces seen lately. A piece has one place
// to be, and a newer one takes it, so the cache needs no lock, no list and no
// more memory than its table. The seed is random, so nobody can choose words
// that meet in one place.
type wordCache struct {
	seed  maphash.Seed
	slots []cacheSlot
}

type cacheSlot struct{ entry atomic.Pointer[cachedWord] }

// cachedWord is immutable.
type cachedWord struct {
	text string
	ids  []int32
}

// cacheSize is the number of places: about 4 MiB when all are taken by words.
const cacheSize = 1 << 15

func newWordCache() wordCache {
	return wordCache{seed: maphash.MakeSeed(), slots: make([]cacheSlot, cacheSize)}
}

// get returns the place of a piece, and its tokens if they are there.
func (c *wordCache) get(piece string) (*cacheSlot, []int32) {
	slot := &c.slots[maphash.String(c.seed, piece)&(cacheSize-1)]
	if e := slot.entry.Load(); e != nil && e.text == piece {
		return slot, e.ids
	}
	return slot, nil
}

// put remembers a piece. Both arguments are copied: the piece is a part of
// a request's text, which would otherwise live as long as the cache.
func (s *cacheSlot) put(piece string, ids []int32) {
	s.entry.Store(&cachedWord{
		text: string(append([]byte(nil), piece...)),
		ids:  append(make([]int32, 0, len(ids)), ids...),
	})
}
