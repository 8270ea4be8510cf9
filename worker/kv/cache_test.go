package kv

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
)

func tokens(n, from int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(from + i)
	}
	return out
}

// fill admits and computes a sequence.
func fill(t *testing.T, p *Cache, tok []int32) (*Table, int) {
	t.Helper()
	table := &Table{}
	hit, ok := p.Admit(table, tok, len(tok), true)
	if !ok || !p.Extend(table, hit, len(tok)) {
		t.Fatalf("no room for %d tokens", len(tok))
	}
	p.Commit(table, tok, len(tok))
	return table, hit
}

func TestHits(t *testing.T) {
	p := New(Options{Groups: []Group{{Blocks: 20, BlockTokens: 4}}, PrefixCache: true})
	f := func(tok []int32, salt string, want int) {
		t.Helper()
		table := &Table{Salt: salt}
		hit, ok := p.Admit(table, tok, len(tok), true)
		if !ok || hit != want {
			t.Fatalf("hit %d, %v; want %d", hit, ok, want)
		}
		p.Commit(table, tok, len(tok))
		p.Release(table)
		if err := p.Check(nil); err != nil {
			t.Fatal(err)
		}
	}
	f(tokens(10, 0), "", 0)
	f(tokens(10, 0), "", 8)
	f(tokens(12, 0), "", 8) // its third block is new
	f(tokens(12, 0), "", 8) // and now there, but the last token is always computed
	f(tokens(13, 0), "", 12)
	f(tokens(10, 0), "salt", 0) // another salt
	f(append(tokens(4, 0), tokens(8, 90)...), "", 4)
	f(tokens(9, 1), "", 0) // the same tokens elsewhere are another prefix
	f(tokens(3, 0), "", 0)
}

// collided is two blocks of 32 tokens of which every XXH64 that begins with eight
// bytes of something else is the same.
func collided() (a, b []int32) {
	a, b = tokens(32, 100), tokens(32, 100)
	a[0], a[1], a[8], a[9] = 1, 2, 0, 68963
	b[0], b[1], b[8], b[9] = 11321, 1064, 11775, 0
	return a, b
}

// Two prompts that collide under a hash which is not made against attackers have
// prefixes of their own: what one computed behind its block is not what the other
// has behind its.
func TestCollision(t *testing.T) {
	a, b := collided()
	hash := func(tok []int32) uint64 {
		buf := []byte("8 bytes!")
		for _, id := range tok {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(id))
		}
		return xxhash.Sum64(buf)
	}
	if hash(a) != hash(b) {
		t.Fatal("the blocks do not collide: this test shows nothing")
	}
	p := New(Options{Groups: []Group{{Blocks: 20, BlockTokens: 32}}, PrefixCache: true})
	last := tokens(33, 500)
	first, _ := fill(t, p, a)
	attack, _ := fill(t, p, append(slices.Clone(b), last...))
	victim := &Table{}
	if hit, ok := p.Admit(victim, append(slices.Clone(a), last...), 65, true); !ok || hit != 32 || victim.Groups[0][1] == attack.Groups[0][1] {
		t.Fatalf("hit %d, %v: the victim has the block that was computed behind another prefix", hit, ok)
	}
	for _, x := range []*Table{first, attack, victim} {
		p.Release(x)
	}
	if err := p.Check(nil); err != nil {
		t.Fatal(err)
	}
}

// No choice of salts makes prompts of two adapters, or of two salts, share blocks,
// and pools with different keys have no digest in common.
func TestApart(t *testing.T) {
	seen := map[digest]string{}
	for _, key := range []Key{{}, {1}, {15: 1}} {
		p := New(Options{Groups: []Group{{Blocks: 20, BlockTokens: 4}}, PrefixCache: true, Key: key})
		for _, adapter := range []uint64{0, 1, 2, 1 << 63} {
			for _, salt := range []string{"", "a", "b", "\x00", "a\x00", "\x01\x00\x00\x00\x00\x00\x00\x00"} {
				x := &Table{Salt: salt, Adapter: adapter}
				p.extendChain(x, tokens(8, 0), 2)
				for _, d := range append(x.chain, p.root(x)) {
					name := fmt.Sprintf("key %x, adapter %d, salt %q", key, adapter, salt)
					if seen[d] != "" {
						t.Fatalf("%s meets %s", name, seen[d])
					}
					seen[d] = name
				}
			}
		}
	}
}

func TestEviction(t *testing.T) {
	p := New(Options{Groups: []Group{{Blocks: 6, BlockTokens: 4}}, PrefixCache: true})
	a, _ := fill(t, p, tokens(12, 0))
	head := a.Groups[0][0]
	p.Release(a)
	b, _ := fill(t, p, tokens(12, 50)) // takes the three blocks that were never used
	if p.TakeEvicted() != nil {
		t.Fatal("a prefix was dropped while empty blocks were there")
	}
	c, _ := fill(t, p, tokens(8, 100)) // takes two of a's, the tail first
	gone := p.TakeEvicted()
	if len(gone) != 2 || gone[0] == head || gone[1] == head {
		t.Fatalf("evicted %v; the head is %d", gone, head)
	}
	p.Release(b)
	p.Release(c)
	if _, hit := fill(t, p, tokens(9, 0)); hit != 4 {
		t.Fatalf("of a's beginning %d tokens are left; want 4", hit)
	}
}

func TestNoRoomTakesNothing(t *testing.T) {
	p := New(Options{Groups: []Group{{Blocks: 4, BlockTokens: 4}, {Blocks: 2, State: true}}})
	a := &Table{}
	if _, ok := p.Admit(a, tokens(12, 0), 12, true); !ok {
		t.Fatal("no room in an empty pool")
	}
	if _, ok := p.Admit(&Table{}, tokens(8, 0), 8, true); ok {
		t.Fatal("three and two blocks of four")
	}
	if p.Extend(a, 12, 17) {
		t.Fatal("five blocks of four")
	}
	if err := p.Check([]*Table{a}); err != nil || p.UsedTokens() != 12 || p.Usage() != 0.75 {
		t.Fatalf("%v, used %d", err, p.UsedTokens())
	}
	if p.Reset() {
		t.Fatal("reset while a table holds blocks")
	}
}

func TestForkShares(t *testing.T) {
	p := New(Options{Groups: []Group{{Blocks: 10, BlockTokens: 4}}})
	a, b := &Table{}, &Table{}
	tok := tokens(10, 0)
	if _, ok := p.Admit(a, tok, 10, true); !ok {
		t.Fatal("no room")
	}
	if n, ok := p.Fork(b, a, 10, 10); !ok || n != 8 || b.Groups[0][1] != a.Groups[0][1] || b.Groups[0][2] == a.Groups[0][2] {
		t.Fatalf("shared %d, %v: %v and %v", n, ok, a.Groups, b.Groups)
	}
	if p.UsedTokens() != 16 {
		t.Fatalf("used %d; want four blocks", p.UsedTokens())
	}
	p.Release(a)
	if err := p.Check([]*Table{b}); err != nil {
		t.Fatal(err)
	}
}

func TestWindowGivesBack(t *testing.T) {
	p := New(Options{Groups: []Group{{Blocks: 30, BlockTokens: 4}, {Blocks: 5, BlockTokens: 4, Window: 6}}, PrefixCache: true})
	tok := tokens(100, 0)
	a := &Table{}
	if _, ok := p.Admit(a, tok, 100, true); !ok {
		t.Fatal("no room")
	}
	for at := 0; at < 100; at += 5 {
		if !p.Extend(a, at, at+5) {
			t.Fatalf("no room at %d: %v", at, a.Groups[1])
		}
		p.Commit(a, tok, at+5)
		for b := range a.Groups[1] {
			if seen := (b+1)*4 > at-5; seen != (a.Groups[1][b] >= 0) {
				t.Fatalf("at %d block %d is %d", at, b, a.Groups[1][b])
			}
		}
	}
}

// FuzzPool does what the input says, and checks the account after each act.
func FuzzPool(f *testing.F) {
	f.Add([]byte{1, 9, 2, 9, 3, 0, 1, 200, 4, 1})
	f.Add([]byte{1, 255, 1, 255, 1, 255, 3, 0, 1, 255})
	f.Fuzz(func(t *testing.T, acts []byte) {
		p := New(Options{Groups: []Group{{Blocks: 12, BlockTokens: 4}, {Blocks: 12, BlockTokens: 4, Window: 7}}, PrefixCache: true})
		rng := rand.New(rand.NewPCG(1, 1))
		var tables []*Table
		for i := 0; i+1 < len(acts) && i < 400; i += 2 {
			n := int(acts[i+1])
			switch acts[i] % 3 {
			case 0, 1:
				q := &Table{}
				tok := tokens(1+n%40, n/128)
				if hit, ok := p.Admit(q, tok, len(tok), true); ok && p.Extend(q, hit, len(tok)) {
					p.Commit(q, tok, len(tok))
					tables = append(tables, q)
				} else {
					p.Release(q)
				}
			case 2:
				if len(tables) > 0 {
					k := rng.IntN(len(tables))
					p.Release(tables[k])
					tables = append(tables[:k], tables[k+1:]...)
				}
			}
			if err := p.Check(tables); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestMediaTellPromptsApart: the same ids that stand for other items, or for the
// same ones from another token on, are another prefix from the first block on that
// an item touches.
func TestMediaTellPromptsApart(t *testing.T) {
	p := New(Options{Groups: []Group{{Blocks: 40, BlockTokens: 4}}, PrefixCache: true})
	f := func(want int, media ...Media) {
		t.Helper()
		table, tok := &Table{Media: media}, tokens(20, 0)
		hit, ok := p.Admit(table, tok, len(tok), true)
		if !ok || hit != want {
			t.Fatalf("%v: hit %d, %v; want %d", media, hit, ok, want)
		}
		p.Commit(table, tok, len(tok))
		p.Release(table)
	}
	a, b := [32]byte{1}, [32]byte{2}
	f(0, Media{First: 6, Count: 5, Digest: a})
	f(16, Media{First: 6, Count: 5, Digest: a})
	f(4, Media{First: 6, Count: 5, Digest: b})
	f(4, Media{First: 7, Count: 5, Digest: a})
	f(4)
	f(12, Media{First: 6, Count: 5, Digest: a}, Media{First: 13, Count: 1, Digest: b})
}
