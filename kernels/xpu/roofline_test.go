package xpu

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"roundhouse/kernels"
)

// card is a GPU by its maker's figures, a second.
type card struct {
	name    string
	tuning  Tuning
	memory  float64 // bytes
	integer float64 // int8 operations of the matrix unit
	half    float64 // bf16 operations of the matrix unit
	single  float64 // float32 operations of the vector units
}

var cards = []card{
	{"Arc Pro B60", matrixTuning(16), 456e9, 197e12, 98e12, 12.3e12},
	{"Max 1100", matrixTuning(16), 1229e9, 705e12, 352e12, 22.2e12},
}

// eight is a model of eight thousand million parameters, as Qwen3-8B.
const (
	layers, hidden, inner, vocab = 36, 4096, 12288, 151936
	heads, kvHeads, dim          = 32, 8, 128
)

// stepTraffic is a step of seqs sequences, each of so many new rows and so long a context
// afterwards, in a format; pages are bf16 and the last matrix int8.
func stepTraffic(t Tuning, f kernels.Format, seqs, rows, context int) (linears, attention Traffic) {
	together, wide := t.covers(f, seqs*rows)
	for _, m := range [][2]int{{(heads + 2*kvHeads) * dim, hidden}, {hidden, heads * dim}, {2 * inner, hidden}, {hidden, inner}} {
		linears.add(linearTraffic(shape{f, m[0], m[1], 128, false}, seqs*rows, together, wide), layers)
	}
	together, wide = t.covers(kernels.FormatInt8, seqs)
	linears.add(linearTraffic(shape{kernels.FormatInt8, vocab, hidden, 128, false}, seqs, together, wide), 1)
	attention.add(t.attentionTraffic(heads, kvHeads, dim, 2*dim, rows, context), int64(layers*seqs))
	return linears, attention
}

// roofline is the table of testdata/roofline.md.
func roofline() string {
	var s strings.Builder
	fmt.Fprint(&s, "| step | from memory, GB | bound |")
	for _, c := range cards {
		fmt.Fprintf(&s, " %s: least ms, tokens/s at most |", c.name)
	}
	fmt.Fprintln(&s, "\n|---|---|---|---|---|")
	for _, f := range []kernels.Format{kernels.FormatInt4, kernels.FormatFP8} {
		for _, step := range []struct {
			name                string
			seqs, rows, context int
		}{{"decode, 1 sequence", 1, 1, 4096}, {"decode, 32 sequences", 32, 1, 4096}, {"prefill, 2048 tokens", 1, 2048, 2048}} {
			var cells strings.Builder
			var bytes float64
			bound := ""
			for _, c := range cards {
				l, a := stepTraffic(c.tuning, f, step.seqs, step.rows, step.context)
				unit := c.half
				if integer(f) {
					unit = c.integer
				}
				bytes = float64(l.Weights + a.Weights)
				computing := float64(l.Flops)/unit + float64(a.Flops)/c.single
				seconds, by := bytes/c.memory, "memory"
				if computing > seconds {
					seconds, by = computing, "arithmetic"
				}
				if bound != "" && bound != by {
					panic("the cards differ in what bounds them: a row has one word for both")
				}
				bound = by
				fmt.Fprintf(&cells, " %.1f, %.0f |", 1e3*seconds, float64(step.seqs*step.rows)/seconds)
			}
			fmt.Fprintf(&s, "| %v, %s | %.2f | %s |%s\n", f, step.name, bytes/1e9, bound, cells.String())
		}
	}
	return s.String()
}

// The roofline of testdata/roofline.md is that of the kernels as they are: of a model of what
// they move, which TestLinearTraffic and TestAttentionTraffic hold to their own counts.
func TestRoofline(t *testing.T) {
	text, err := os.ReadFile("testdata/roofline.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := roofline(); !strings.Contains(string(text), want) {
		t.Errorf("testdata/roofline.md lacks this table, or has an older one:\n%s", want)
	}
}
