package worker

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// scanned is a guess by reading all of the text.
func (n NGram) scanned(text []int32) []int32 {
	for k := min(n.Max, len(text)-1); k >= max(1, n.Min); k-- {
		for i := 0; i+k < len(text); i++ {
			if slices.Equal(text[i:i+k], text[len(text)-k:]) {
				return text[i+k : min(i+k+n.Tokens, len(text))]
			}
		}
	}
	return nil
}

// A text that grows is guessed on as one that is read anew each time.
func TestGuess(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := NGram{Tokens: 1 + r.IntN(5), Min: r.IntN(4)}
		n.Max = n.Min + r.IntN(4)
		g, vocab := n.guesser(), 1+r.IntN(40)
		var text []int32
		for len(text) < 300 {
			for range 1 + r.IntN(5) {
				text = append(text, int32(r.IntN(vocab)))
			}
			if got, want := g.guess(text), n.scanned(text); !slices.Equal(got, want) {
				t.Fatalf("seed %d, %+v: behind %v: %v; want %v", seed, n, text, got, want)
			}
		}
	}
}

// Guesses after every token of a text cost in proportion to its length: whether it
// repeats nothing, itself, or one token.
func TestGuessCost(t *testing.T) {
	f := func(name string, token func(i int) int32) {
		t.Helper()
		cost := func(length int) int {
			g := NGram{Tokens: 4, Max: 4, Min: 1}.guesser()
			text := make([]int32, 0, length)
			for i := range length {
				text = append(text, token(i))
				g.guess(text)
			}
			return g.looked
		}
		if once, twice := cost(20_000), cost(40_000); twice > 3*once || once > 20_000*40 {
			t.Errorf("%s: %d places looked at for 20 000 tokens, %d for 40 000", name, once, twice)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	f("nothing", func(i int) int32 { return int32(i) })
	f("itself", func(i int) int32 { return int32(i % 1000) })
	f("one token", func(int) int32 { return 7 })
	f("words", func(int) int32 { return int32(r.IntN(500)) })
}
