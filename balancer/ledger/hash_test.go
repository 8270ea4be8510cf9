package ledger

import (
	"math/bits"
	"math/rand/v2"
	"testing"
)

// TestHash computes the same in vector registers as without, and what it must on
// every machine.
func TestHash(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 1))
	for n := range 9 {
		b := make([]byte, n*ChunkBytes)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		lanes, want, salt := [8]uint64{1, 2, 3, 4, 5, 6, 7, 8}, [8]uint64{1, 2, 3, 4, 5, 6, 7, 8}, rng.Uint64()
		accumulate(&lanes, &hashKeys, salt, b)
		accumulateGo(&want, &hashKeys, salt, b)
		if lanes != want {
			t.Errorf("seed %d, %d chunks: the lanes hold %x; want %x", seed, n, lanes, want)
		}
	}
	b := make([]byte, 2*ChunkBytes)
	for i := range b {
		b[i] = byte(i)
	}
	if got := hash(1, b); got != 0xee09084d8cdaf61b {
		t.Errorf("the hash of a known chunk is %#x: doors of other versions would not know its prompts", got)
	}
}

// TestHashSpreads changes half of the hash by any bit of a chunk or its seed,
// and tells all chunks of one byte repeated from one another.
func TestHashSpreads(t *testing.T) {
	b := make([]byte, ChunkBytes)
	changed, least, tries := 0, 64, 0
	f := func(seed uint64) {
		if n := bits.OnesCount64(hash(seed, b) ^ hash(0, make([]byte, ChunkBytes))); n > 0 {
			changed, least = changed+n, min(least, n)
		} else {
			t.Error("two chunks have one hash")
		}
		tries++
	}
	for bit := range 8 * ChunkBytes {
		b[bit/8] ^= 1 << (bit % 8)
		f(0)
		b[bit/8] ^= 1 << (bit % 8)
	}
	for bit := range 64 {
		f(1 << bit)
	}
	if mean := float64(changed) / float64(tries); mean < 31 || mean > 33 || least < 8 {
		t.Errorf("one bit changes %.1f bits of 64, at least %d", mean, least)
	}
	seen := map[uint64]int{}
	for c := range 256 {
		for i := range b {
			b[i] = byte(c)
		}
		for seed := range uint64(64) {
			seen[hash(seed, b)]++
		}
	}
	if len(seen) != 256*64 {
		t.Errorf("%d hashes of %d chunks", len(seen), 256*64)
	}
}
