package grammar

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"
)

// largeVocab is a made-up vocabulary of 152,000 tokens shaped like those of
// large models: bytes, words with and without a space, signs, runs of spaces,
// parts of characters.
func largeVocab() *Vocab {
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
	words = append(words, nil)
	return NewVocab(words, []int32{int32(len(words) - 1)})
}

// BenchmarkMask runs outputs of a schema as a tool would have it through a
// vocabulary of 152,000 tokens, and reports the slowest masks: a decoding
// step takes some 20 ms at that size.
func BenchmarkMask(b *testing.B) {
	begin := time.Now()
	v := largeVocab()
	b.Logf("vocabulary: %d nodes, made in %v", len(v.char), time.Since(begin).Round(time.Millisecond))
	schema := `{"type":"object","properties":{"query":{"type":"string"},"filters":{"type":"array","items":{"type":"object","properties":{
"field":{"enum":["title","author","year"]},"op":{"type":"string","pattern":"^[a-z]{2,12}$"},"value":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"}]}},
"required":["field","op","value"]}},"limit":{"type":"integer","minimum":1,"maximum":100},"note":{"type":"string","maxLength":200}},"required":["query","filters","limit"]}`
	for _, name := range []string{"schema", "object", "regex"} {
		spec := map[string]Spec{"schema": {JSONSchema: []byte(schema)}, "object": {JSONObject: true}, "regex": {Regex: `(\w+ ){3,40}\d+\.`}}[name]
		b.Run(name, func(b *testing.B) {
			begin := time.Now()
			g, err := Compile(spec, v)
			if err != nil {
				b.Fatal(err)
			}
			compile := time.Since(begin)
			var times []time.Duration
			for i := range b.N {
				r := rand.New(rand.NewSource(int64(i)))
				m := g.Start()
				for left := 300; left > 0 && !m.Done(); left-- {
					begin := time.Now()
					mask := m.Mask(left)
					times = append(times, time.Since(begin))
					pick := int32(-1)
					for range 2000 { // rejection: most draws from a text's tokens
						if c := int32(r.Intn(v.size)); mask[c/32]&(1<<(c%32)) != 0 {
							pick = c
							break
						}
					}
					for c := int32(0); pick < 0; c++ {
						if mask[c/32]&(1<<(c%32)) != 0 {
							pick = c
						}
					}
					begin = time.Now()
					if err := m.Advance(pick); err != nil {
						b.Fatal(err)
					}
					times[len(times)-1] += time.Since(begin)
				}
			}
			slices.Sort(times)
			at := func(q float64) float64 { return float64(times[int(q*float64(len(times)-1))].Microseconds()) }
			b.ReportMetric(at(0.5), "µs-p50")
			b.ReportMetric(at(0.99), "µs-p99")
			b.ReportMetric(at(1), "µs-max")
			b.ReportMetric(float64(compile.Milliseconds()), "ms-compile")
		})
	}
}
