package ledger

import (
	"encoding/base64"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestDigestsAround: an item has one digest wherever it stands and however it is
// spelled; a chain parts where the prompts do, in text or in items; and an item
// counts by its tokens.
func TestDigestsAround(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	file := func() string {
		b := make([]byte, 5000+rng.IntN(3000))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	one, two := file(), file()
	// Parts of odd places are items.
	f := func(tokens int, parts ...string) (chunks, own []uint64) {
		var items []Item
		prompt := ""
		for i, p := range parts {
			if i%2 == 1 {
				items = append(items, Item{len(prompt), len(prompt) + len(p), tokens})
			}
			prompt += p
		}
		return DigestsAround(nil, nil, 1, 2, []byte(prompt), items)
	}
	story, other := strings.Repeat("once upon a time", 200), strings.Repeat("another question", 70)
	plain := Digests(nil, 1, []byte(story))
	if d, own := f(9, story); !slices.Equal(d, plain) || len(own) != 0 {
		t.Error("a prompt without items has other digests")
	}
	a, own := f(1000, story, one, story)
	if !slices.Equal(a[:3], plain) || unitsOf(a[3]) != 4 || UnitsOf(a) != 3+4+3 {
		t.Errorf("1000 tokens are %d KiB of text; the chain %x", unitsOf(a[3]), a)
	}
	if b, same := f(1000, story, strings.ReplaceAll(one, "/", `\/`), story); !slices.Equal(a, b) || !slices.Equal(own, same) {
		t.Error("with its slashes escaped an item is another")
	}
	if b, same := f(1000, other, one, story); a[3] == b[1] || !slices.Equal(own, same) {
		t.Error("behind another text the item's own digest, and it alone, is to be the same")
	}
	if b, same := f(1000, story[:len(story)-1]+"!", one, story); !slices.Equal(a[:3], b[:3]) || a[3] == b[3] || own[0] != same[0] {
		t.Error("the item's chunk does not know of the text right before it")
	}
	b, others := f(1000, story, two, story)
	if !slices.Equal(a[:3], b[:3]) || a[3] == b[3] || a[4] == b[4] || own[0] == others[0] {
		t.Error("another item gives the same digests")
	}
	for _, at := range []int{0, 1023, 1024, len(one) - 1} {
		changed := []byte(one)
		changed[at] ^= 1
		if b, others := f(1000, story, string(changed), story); a[3] == b[3] || own[0] == others[0] {
			t.Errorf("the digests do not know of byte %d", at)
		}
	}
	if _, both := f(1000, "", one, "", two, ""); !slices.Equal(both, append(own, others...)) {
		t.Errorf("two items: %x; alone %x and %x", both, own, others)
	}
}

// TestDigestsAroundTakesNothing: hashing megabytes of pictures makes no copy.
func TestDigestsAroundTakesNothing(t *testing.T) {
	prompt := []byte(strings.Repeat("iVBORw0KGgo+AAAA", 1<<18))
	items := []Item{{100, len(prompt) / 2, 900}, {len(prompt)/2 + 5, len(prompt) - 7, 900}}
	var chunks, own []uint64
	if n := testing.AllocsPerRun(5, func() { chunks, own = DigestsAround(chunks[:0], own[:0], 1, 2, prompt, items) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkDigestsAround: what pictures cost in a prompt of
// four megabytes.
func BenchmarkDigestsAround(b *testing.B) {
	prompt := []byte(strings.Repeat("iVBORw0KGgo+AAAA", 1<<18))
	var chunks, own []uint64
	for _, items := range [][]Item{nil, {{100, len(prompt) - 100, 900}}} {
		b.Run([]string{"text", "picture"}[len(items)], func(b *testing.B) {
			b.SetBytes(int64(len(prompt)))
			for b.Loop() {
				chunks, own = DigestsAround(chunks[:0], own[:0], 1, 2, prompt, items)
			}
		})
	}
}
