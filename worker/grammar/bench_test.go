package grammar

import (
	"math/rand"
	"slices"
	"testing"
	"time"

	"roundhouse/worker/grammar/grammartest"
)

// BenchmarkMask runs outputs of a schema as a tool would have it through a
// vocabulary of 152,000 tokens, and reports the slowest masks: a decoding
// step takes some 20 ms at that size.
func BenchmarkMask(b *testing.B) {
	begin := time.Now()
	words := grammartest.LargeVocab()
	v := NewVocab(words, []int32{int32(len(words) - 1)})
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
