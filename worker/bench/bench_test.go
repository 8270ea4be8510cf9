package bench

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
	"roundhouse/kernels/num"
	"roundhouse/worker/demo"
	"roundhouse/worker/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// texts is the prompts with which the demonstration model is held to
// transformers, cut to a length.
func texts(t testing.TB, most int) [][]int32 {
	t.Helper()
	f, err := os.Open("../demo/testdata/golden.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Prompts []struct {
			IDs []int32 `json:"ids"`
		} `json:"prompts"`
	}
	if err := json.NewDecoder(z).Decode(&golden); err != nil {
		t.Fatal(err)
	}
	var all [][]int32
	for _, p := range golden.Prompts {
		all = append(all, p.IDs[:min(most, len(p.IDs))])
	}
	return all
}

// blocks is a backend that is given GGUF's Q4_0 where four bits are asked for.
type blocks struct{ kernels.Backend }

// Weight implements kernels.Backend.
func (b blocks) Weight(src kernels.Source, format kernels.Format) (kernels.Weight, error) {
	if format == kernels.FormatInt4 {
		four := kernels.Source{Name: src.Name, Out: src.Out, In: src.In, Type: kernels.Q4_0}
		row, t := make([]float32, src.In), tensor{gguf: "blk", role: matrix}
		for o := range src.Out {
			num.Row(row, src, o)
			four.Data = append(four.Data, t.encode(row, true)...)
		}
		src = four
	}
	return b.Backend.Weight(src, format)
}

// open is the demonstration model on a backend that ends with the test, its four
// bits by default or as Q4_0.
func open(t testing.TB, threads int, format kernels.Format, page kernels.DType, dequantised, wide, q4 bool) *Runner {
	t.Helper()
	m, err := model.OpenFS(demo.FS)
	if err != nil {
		t.Fatal(err)
	}
	if wide {
		m.WideHead()
	}
	b, err := cpu.New(cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	var be kernels.Backend = b
	if dequantised {
		be = Dequantised{b}
	}
	if q4 {
		be = blocks{be}
	}
	r, err := NewRunner(be, m, format, page, 512)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// logits runs every text and collects the logits of every position.
func logits(t *testing.T, r *Runner, texts [][]int32) [][]float32 {
	t.Helper()
	var all [][]float32
	for _, ids := range texts {
		result, err := r.Run(ids, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range result.Logits {
			all = append(all, slices.Clone(row))
		}
	}
	return all
}

// TestAccuracy holds what a format's operands lose, which is the kernels' part,
// within bounds, and prints it beside what the format itself loses.
func TestAccuracy(t *testing.T) {
	ids := texts(t, 300)
	whole := logits(t, open(t, 1, kernels.FormatF32, kernels.F32, false, false, false), ids)
	for _, f := range []struct {
		format kernels.Format
		wide   bool // a head of 16 bits
		q4     bool // four bits as Q4_0
		kl     float64
	}{
		{kernels.FormatF32, false, false, 1e-9},
		{kernels.FormatF16, false, false, 1e-9},
		{kernels.FormatBF16, false, false, 1e-4},
		{kernels.FormatFP8, true, false, 1e-4},
		{kernels.FormatFP8, false, false, 1e-4},
		{kernels.FormatInt8, true, false, 1e-3},
		{kernels.FormatInt8, false, false, 1e-3},
		{kernels.FormatInt4, true, false, 1e-3},
		{kernels.FormatInt4, false, false, 1e-3},
		{kernels.FormatInt4, true, true, 1e-3},
		{kernels.FormatInt4, false, true, 1e-3},
	} {
		got := logits(t, open(t, 1, f.format, kernels.F32, false, f.wide, f.q4), ids)
		ideal := logits(t, open(t, 1, f.format, kernels.F32, true, f.wide, f.q4), ids)
		kernel, err := Compare(ideal, got)
		if err != nil {
			t.Fatal(err)
		}
		format, err := Compare(whole, ideal)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-9v wide head %-5v Q4_0 %-5v kernels: KL %.2g a token, same first choice %.2f %%; format: KL %.2g, same %.2f %%",
			f.format, f.wide, f.q4, kernel.KL, 100*kernel.Agree, format.KL, 100*format.Agree)
		if !(kernel.KL <= f.kl) {
			t.Errorf("%v: the kernels lose a KL of %.3g a token; want at most %g", f.format, kernel.KL, f.kl)
		}
	}
}

// TestPageAccuracy holds what pages lose, beside pages in float32, within bounds.
func TestPageAccuracy(t *testing.T) {
	ids := texts(t, 300)
	whole := logits(t, open(t, 1, kernels.FormatF32, kernels.F32, false, false, false), ids)
	for _, f := range []struct {
		page kernels.DType
		kl   float64
	}{{kernels.BF16, 1e-4}, {kernels.Int8, 1e-3}, {kernels.F8E4M3, 3e-2}} {
		got, err := Compare(whole, logits(t, open(t, 1, kernels.FormatF32, f.page, false, false, false), ids))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("pages of %-10v KL %.2g a token, same first choice %.2f %%", f.page, got.KL, 100*got.Agree)
		if !(got.KL <= f.kl) {
			t.Errorf("pages of %v lose a KL of %.3g a token; want at most %g", f.page, got.KL, f.kl)
		}
	}
}

// BenchmarkDemo is the demonstration model: one token after 200, and a prompt
// of 512.
func BenchmarkDemo(b *testing.B) {
	prompt := make([]int32, 512)
	for i := range prompt {
		prompt[i] = int32(i % 1000)
	}
	for _, format := range []kernels.Format{kernels.FormatF32, kernels.FormatBF16, kernels.FormatInt8, kernels.FormatInt4} {
		for _, threads := range []int{1, 2} {
			r := open(b, threads, format, kernels.BF16, false, false, false)
			run := func(name string, ids []int32, first int) {
				b.Run(fmt.Sprintf("%v/threads=%d/%s", format, threads, name), func(b *testing.B) {
					for b.Loop() {
						if _, err := r.Run(ids, first, false); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(len(ids)*b.N)/b.Elapsed().Seconds(), "tokens/s")
				})
			}
			run("prompt", prompt, 0)
			run("decode", prompt[200:201], 200)
		}
	}
}
