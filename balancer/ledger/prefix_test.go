package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPrefixTable(t *testing.T) {
	pt := NewPrefixTable(100 * (slotBytes + 8))
	prompt := make([]byte, 10*ChunkBytes)
	for i := range prompt {
		prompt[i] = byte(i / ChunkBytes)
	}
	d := Digests(nil, 1, prompt)
	if len(d) != 10 || Digests(nil, 2, prompt)[0] == d[0] {
		t.Fatal("a digest for each chunk, under its salt")
	}
	pt.Add(0, d)
	pt.Add(1, d[:4])
	hits := make([]int32, 3)
	pt.Match(d, hits)
	if fmt.Sprint(hits) != "[10 4 0]" {
		t.Fatalf("hits are %v", hits)
	}
	pt.Drop(0, d[2:]) // an engine frees a prompt from its end
	if pt.Match(d, hits); fmt.Sprint(hits) != "[2 4 0]" {
		t.Fatalf("after a loss hits are %v", hits)
	}
	pt.Forget(1)
	if pt.Match(d, hits); fmt.Sprint(hits) != "[2 0 0]" {
		t.Fatalf("after a restart hits are %v", hits)
	}
	for i := range 200 {
		pt.Add(2, []uint64{uint64(i+1e6) << 4})
	}
	if pt.Match(d, hits); fmt.Sprint(hits) != "[0 0 0]" {
		t.Fatalf("what was used least recently must be forgotten, hits are %v", hits)
	}
}

// TestPrefixDepths looks chains of every length up for more workers than one
// word holds, and compares with what was added.
func TestPrefixDepths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "workers")
		pt := NewPrefixTable(1 << 20)
		chain := make([]uint64, rapid.IntRange(1, 300).Draw(t, "chunks"))
		for i := range chain {
			chain[i] = uint64(i+1) << 4
		}
		want := make([]int32, n)
		for range rapid.IntRange(0, 60).Draw(t, "additions") {
			w, depth := rapid.IntRange(0, n-1).Draw(t, "worker"), rapid.IntRange(0, len(chain)).Draw(t, "depth")
			pt.Add(w, chain[:depth])
			want[w] = max(want[w], int32(depth))
		}
		got := make([]int32, n)
		if pt.Match(chain, got); !slices.Equal(got, want) {
			t.Fatalf("hits are %v; want %v", got, want)
		}
		fork := append(slices.Clone(chain[:len(chain)/2]), 1e9)
		pt.Match(fork, got)
		for i := range want {
			if got[i] != min(want[i], int32(len(chain)/2)) {
				t.Fatalf("of a prompt that parts after %d chunks worker %d has %d", len(chain)/2, i, got[i])
			}
		}
	})
}

// TestPrefixShare holds a worker to what its cache can hold, and keeps what is
// used.
func TestPrefixShare(t *testing.T) {
	pt := NewPrefixTable(1 << 20)
	pt.Limit(0, 50)
	hot := []uint64{1 << 4, 2 << 4, 3 << 4, 4 << 4}
	hits := make([]int32, 2)
	for i := range uint64(1000) {
		pt.Add(0, hot)
		pt.Add(0, []uint64{(1000 + i) << 4})
		pt.Add(1, []uint64{(1000 + i) << 4})
	}
	if pt.Match(hot, hits); hits[0] != 4 {
		t.Errorf("a prompt that is always used was forgotten: %v", hits)
	}
	count := [2]int{}
	for i := range uint64(1000) {
		pt.Match([]uint64{(1000 + i) << 4}, hits)
		count[0] += int(hits[0])
		count[1] += int(hits[1])
	}
	if count[0]+4 > 50 || count[0] < 40 || count[1] != 1000 {
		t.Errorf("a worker of 50 chunks has %d, one without a bound %d of 1000", count[0]+4, count[1])
	}
	long := []uint64{2000<<4 | 4} // sixteen times as long
	if pt.Add(0, long); pt.shares[0].has > 50 {
		t.Errorf("a worker of 50 chunks has %d", pt.shares[0].has)
	}
	if pt.Match(long, hits); hits[0] != 1 {
		t.Error("the newest chunk is not there")
	}
}

// TestChunks has chunks grow with what lies before them, and says in each digest
// how long its chunk is.
func TestChunks(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 1))
	prompt := make([]byte, 3<<20)
	for i := range prompt {
		prompt[i] = byte(rng.Uint32())
	}
	d := Digests(nil, 1, prompt)
	units := 0
	for n, one := range d {
		if Units(n) != units {
			t.Fatalf("the first %d chunks are %d KiB by their digests, %d by Units", n, units, Units(n))
		}
		if size := unitsOf(one); size > 1 && size*32 > units {
			t.Fatalf("behind %d KiB a chunk has %d", units, size)
		}
		units += unitsOf(one)
	}
	if last := unitsOf(d[len(d)-1]); units > 3<<10 || units+2*last <= 3<<10 {
		t.Errorf("%d KiB of %d have digests", units, 3<<10)
	}
	for _, at := range []int{0, 700, 65 << 10, 100 << 10, 1 << 20} {
		prompt[at] ^= 1
		other := Digests(nil, 1, prompt)
		prompt[at] ^= 1
		same := 0
		for same < len(d) && d[same] == other[same] {
			same++
		}
		if from, to := Units(same)<<10, Units(same+1)<<10; at < from || at >= to {
			t.Errorf("seed %d: prompts that part at byte %d have %d chunks in common, to %d", seed, at, same, from)
		}
		if len(other) > same && other[len(other)-1] == d[len(d)-1] {
			t.Errorf("seed %d: the last digest does not know of byte %d", seed, at)
		}
	}
	if n := len(Digests(nil, 1, prompt[:400_000])); n != 144 {
		t.Errorf("400 KB have %d digests", n)
	}
}

// TestPrefixExport carries a table over to another one.
func TestPrefixExport(t *testing.T) {
	pt := NewPrefixTable(1 << 20)
	pt.Add(3, []uint64{1 << 4, 2 << 4, 3 << 4})
	pt.Add(70, []uint64{1 << 4, 2 << 4})
	next := NewPrefixTable(1 << 20)
	for _, k := range pt.Export(100) {
		for w := range 128 {
			if k.Workers[w/64]&(1<<(w%64)) != 0 {
				next.Add(w, []uint64{k.Digest})
			}
		}
	}
	hits := make([]int32, 128)
	if next.Match([]uint64{1 << 4, 2 << 4, 3 << 4}, hits); hits[3] != 3 || hits[70] != 2 || hits[0] != 0 {
		t.Errorf("after the move hits are %v", hits)
	}
	if got := pt.Export(1); len(got) != 1 || got[0].Digest != 1<<4 {
		t.Errorf("the most recent is %v", got)
	}
}

// BenchmarkMatch looks up 400 KB of prompt that a thousand workers know.
func BenchmarkMatch(b *testing.B) {
	pt := NewPrefixTable(64 << 20)
	chain := make([]uint64, 400)
	for i := range chain {
		chain[i] = rand.Uint64()
	}
	for w := range 1000 {
		pt.Add(w, chain[:100+w%300])
	}
	hits := make([]int32, 1000)
	b.ReportAllocs()
	for b.Loop() {
		pt.Match(chain, hits)
	}
}
