package grammartest

import (
	"fmt"
	"math/rand"
)

// LargeVocab is a made-up vocabulary of 152,000 tokens shaped like those of
// large models: bytes, words with and without a space, signs, runs of spaces,
// parts of characters. The last one ends a text.
func LargeVocab() [][]byte {
	r := rand.New(rand.NewSource(1))
	var words [][]byte
	seen := map[string]bool{}
	add := func(s string) {
		if !seen[s] {
			seen[s] = true
			words = append(words, []byte(s))
		}
	}
	for c := range 256 {
		add(string([]byte{byte(c)}))
	}
	for n := 2; n <= 128; n++ {
		add(fmt.Sprintf("%*s", n, ""))
	}
	signs := []string{`"`, `",`, `":`, `{"`, `"}`, `["`, `"]`, `":"`, `","`, `}}`, "},", "\n", "\n ", "  ", `\"`, `\n`, ".", "(", ")", ";", "=", "<", "/>", "_", "-", "//", "::"}
	for _, a := range signs {
		for _, b := range append(signs, "") {
			add(a + b)
			add(" " + a + b)
		}
	}
	letters := "etaoinshrdlucmfwypvbgkqjxzETAOINS"
	for len(words) < 152_000-1 {
		n := 2 + int(r.NormFloat64()*2+4)
		b := make([]byte, 0, 16)
		switch r.Intn(10) {
		case 0, 1, 2, 3, 4:
			b = append(b, ' ')
		case 5:
			b = append(b, signs[r.Intn(len(signs))]...)
		case 6, 7:
			for range max(n/3, 1) {
				b = append(b, string(rune(0x4E00+r.Intn(5000)))...)
			}
			if r.Intn(4) == 0 {
				b = b[:len(b)-1]
			}
			add(string(b))
			continue
		}
		for range max(n, 1) {
			b = append(b, letters[int(r.ExpFloat64()*6)%len(letters)])
		}
		add(string(b))
	}
	return append(words, nil)
}
