package kerneltest

import (
	"math"
	"math/rand/v2"
	"testing"

	"roundhouse/kernels"
)

// Bench times every operation, and a whole decode step, of a backend. Beside ns/op it prints what a linear reads of its weight in
// GB/s, as a share of what a bare loop of as many threads reads in the same run
// (%read), and what it computes in GFLOP/s, as a share of peak (%peak). read and
// peak are what the caller has measured; 0 is unknown.
func Bench(b *testing.B, backend kernels.Backend, read float64, peak func(kernels.Format) float64) {
	for _, kind := range []struct {
		name   string
		format kernels.Format
		stored kernels.DType
	}{
		{"float32", kernels.FormatF32, kernels.Int8}, {"bfloat16", kernels.FormatBF16, kernels.Int8}, {"int8", kernels.FormatInt8, kernels.Int8},
		{"sym_int4", kernels.FormatInt4, kernels.Int8}, {"q4_0", kernels.FormatInt4, kernels.Q4_0}, {"fp8", kernels.FormatFP8, kernels.Int8},
	} {
		top := roof{read: read, flop: peak(kind.format)}
		for _, n := range []int{1, 16, 512} {
			b.Run(name("Linear/%s/rows=%d", kind.name, n), func(b *testing.B) {
				out := 4096
				if n == 1 {
					out = 65536 // beyond the caches, so that a single row shows the memory
				}
				benchLinear(b, backend, kind.format, kind.stored, n, out, 2048, top)
			})
		}
	}
	for _, n := range []int{1, 512} {
		for _, t := range []kernels.DType{kernels.BF16, kernels.F8E4M3, kernels.Int8} {
			b.Run(name("Attention/%v/rows=%d", t, n), func(b *testing.B) {
				benchAttention(b, backend, n, kernels.Attention{Heads: 16, KVHeads: 8, KeyDim: 128, ValueDim: 128, Scale: 0.088}, t, read)
			})
		}
		b.Run(name("Attention/latent/rows=%d", n), func(b *testing.B) { // DeepSeek-V2-Lite's
			benchAttention(b, backend, n, kernels.Attention{Heads: 16, KVHeads: 1, KeyDim: 576, ValueDim: 512, Scale: 0.072, V: kernels.None}, kernels.BF16, read)
		})
	}
	benchOps(b, backend, read, peak)
	for _, format := range []kernels.Format{kernels.FormatBF16, kernels.FormatInt4} {
		b.Run(name("Decode/%v", format), func(b *testing.B) { benchToy(b, backend, format) })
	}
}

// roof is what a bare loop reaches a second.
type roof struct{ read, flop float64 }

func benchLinear(b *testing.B, backend kernels.Backend, format kernels.Format, stored kernels.DType, n, out, in int, top roof) {
	s := newScene(b, backend, 1)
	x := s.input(s.normal(n*in, 1), in)
	y := s.p.New(kernels.Tokens, out)
	elements, size := stored.Block()
	src := kernels.Source{Name: "random", Out: out, In: in, Type: stored, Data: make([]byte, out*in/elements*size)}
	for i := range src.Data {
		src.Data[i] = byte(i * i >> 3)
		if elements > 1 && i%size == 1 {
			src.Data[i] = 0x20 // of the scale: it is a small number
		}
	}
	w := s.add(src, format)
	if s.missing {
		b.Skipf("%s does not have %v", backend.Name(), format)
	}
	s.p.Do(&kernels.Linear{In: x, Out: y, Weights: []kernels.Weight{w}, Add: kernels.None})
	e := s.compile(limitsOf(rows(n)))
	step := rows(n)
	var r kernels.Result
	for b.Loop() {
		if err := e.Run(step, &r); err != nil {
			b.Fatal(err)
		}
	}
	seconds := b.Elapsed().Seconds() / float64(b.N)
	read, flop := float64(w.Bytes())/seconds, 2*float64(n)*float64(out)*float64(in)/seconds
	b.ReportMetric(read/1e9, "GB/s")
	if top.read > 0 {
		b.ReportMetric(100*read/top.read, "%read")
	}
	b.ReportMetric(flop/1e9, "GFLOP/s")
	if top.flop > 0 {
		b.ReportMetric(100*flop/top.flop, "%peak")
	}
}

func benchAttention(b *testing.B, backend kernels.Backend, n int, op kernels.Attention, t kernels.DType, read float64) {
	const context, block = 2048, 16
	s := newScene(b, backend, 2)
	spec := kernels.KVSpec{Layers: 1, Blocks: context / block, BlockTokens: block, Heads: op.KVHeads, KeyDim: op.KeyDim, ValueDim: op.ValueDim, Type: t}
	if op.V == kernels.None {
		spec.ValueDim = 0
	}
	op.KV = s.pages(spec)
	s.attend(op, n)
	e := s.compile(kernels.Limits{Tokens: n, Seqs: 1})
	step := ragged(block, shuffled(context/block, 1), [][2]int{{n, context}})
	var r kernels.Result
	for b.Loop() {
		if err := e.Run(step, &r); err != nil {
			b.Fatal(err)
		}
	}
	seconds := b.Elapsed().Seconds() / float64(b.N)
	if moved := float64(context*spec.Heads*(spec.KeyDim+spec.ValueDim)*t.Size()) / seconds; n == 1 {
		b.ReportMetric(moved/1e9, "GB/s")
		if read > 0 {
			b.ReportMetric(100*moved/read, "%read")
		}
	}
	products := float64(n) * float64(context-n/2) * float64(op.Heads) * float64(op.KeyDim+op.ValueDim)
	b.ReportMetric(2*products/seconds/1e9, "GFLOP/s")
}

// benchToy is a decode step of a model so small that the steps between the
// kernels are most of it.
func benchToy(b *testing.B, backend kernels.Backend, format kernels.Format) {
	m, ok := newToy(b, backend, format, kernels.BF16, kernels.Limits{Tokens: 4, Seqs: 1, Rows: 4})
	if !ok {
		b.Skipf("%s does not have %v", backend.Name(), format)
	}
	step := ragged(toyBlock, shuffled(256, 1), [][2]int{{1, 200}})
	step.Tokens[0] = int32(rand.New(rand.NewPCG(1, 1)).IntN(toyVocab))
	step.Rows = []int32{0}
	step.Sampling = []kernels.Sampling{{TopP: 1}}
	var r kernels.Result
	b.ReportAllocs()
	for b.Loop() {
		if err := m.e.Run(step, &r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(math.Round(float64(b.N)/b.Elapsed().Seconds()), "steps/s")
}
