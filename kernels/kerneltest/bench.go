package kerneltest

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"roundhouse/kernels"
)

// Bench times linears, attention and a whole decode step of a backend with so
// many threads. Beside ns/op it prints what a linear reads of its weight in
// GB/s and computes in GFLOP/s, and each as a share of what a bare loop of as
// many threads reaches in the same run (%read, %flop).
func Bench(b *testing.B, backend kernels.Backend, threads int) {
	roof := measure(threads)
	for _, format := range []kernels.Format{kernels.FormatF32, kernels.FormatBF16, kernels.FormatInt8, kernels.FormatInt4, kernels.FormatFP8} {
		// A matrix beyond the caches, so that a single row shows the memory.
		for _, n := range []int{1, 16, 512} {
			b.Run(name("Linear/%v/rows=%d", format, n), func(b *testing.B) {
				benchLinear(b, backend, format, n, 8192, 2048, roof)
			})
		}
	}
	for _, n := range []int{1, 512} {
		b.Run(name("Attention/rows=%d", n), func(b *testing.B) { benchAttention(b, backend, n) })
	}
	for _, format := range []kernels.Format{kernels.FormatBF16, kernels.FormatInt4} {
		b.Run(name("Decode/%v", format), func(b *testing.B) { benchToy(b, backend, format) })
	}
}

// roof is what a bare loop reaches.
type roof struct {
	read float64 // bytes a second
	flop float64 // float32 operations a second: independent sums in Go
}

// measure runs a bare loop for some tenths of a second: each thread sums a
// slice far beyond the caches, and then numbers that stay in registers.
func measure(threads int) roof {
	each := func(run func() float64) (sum float64) {
		rates := make([]float64, threads)
		var wait sync.WaitGroup
		for t := range threads {
			wait.Add(1)
			go func() {
				defer wait.Done()
				for range 3 {
					rates[t] = max(rates[t], run())
				}
			}()
		}
		wait.Wait()
		for _, r := range rates {
			sum += r
		}
		return sum
	}
	words := make([][]uint64, threads)
	for t := range words {
		words[t] = make([]uint64, 8<<20)
		for i := range words[t] {
			words[t][i] = uint64(i)
		}
	}
	next := make(chan []uint64, threads*3)
	for range 3 {
		for _, w := range words {
			next <- w
		}
	}
	var r roof
	r.read = each(func() float64 {
		w, start := <-next, time.Now()
		var a, b, c, d uint64
		for i := 0; i < len(w); i += 32 { // one load of each half cache line
			a += w[i] + w[i+4]
			b += w[i+8] + w[i+12]
			c += w[i+16] + w[i+20]
			d += w[i+24] + w[i+28]
		}
		keep = a + b + c + d
		return float64(8*len(w)) / time.Since(start).Seconds()
	})
	r.flop = each(func() float64 {
		var s [8]float32
		const n = 20 << 20
		start := time.Now()
		for range n {
			for i := range s {
				s[i] = s[i]*0.999 + 1
			}
		}
		keep = uint64(s[0])
		return 16 * n / time.Since(start).Seconds()
	})
	return r
}

// keep holds what a bare loop has computed, so that it is not left out.
var keep uint64

func benchLinear(b *testing.B, backend kernels.Backend, format kernels.Format, n, out, in int, top roof) {
	s := newScene(b, backend, 1)
	x := s.input(s.normal(n*in, 1), in)
	y := s.p.New(kernels.Tokens, out)
	w := s.matrix(format, out, in)
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
	b.ReportMetric(100*read/top.read, "%read")
	b.ReportMetric(flop/1e9, "GFLOP/s")
	b.ReportMetric(100*flop/top.flop, "%flop")
}

func benchAttention(b *testing.B, backend kernels.Backend, n int) {
	const context, heads, kvHeads, dim, block = 2048, 16, 8, 128, 16
	s := newScene(b, backend, 2)
	kv := s.pages(kernels.KVSpec{Layers: 1, Blocks: context / block, BlockTokens: block, Heads: kvHeads, KeyDim: dim, ValueDim: dim, Type: kernels.BF16})
	s.attend(kernels.Attention{Heads: heads, KVHeads: kvHeads, KeyDim: dim, ValueDim: dim, Scale: 0.088, KV: kv}, n)
	e := s.compile(kernels.Limits{Tokens: n, Seqs: 1})
	step := ragged(block, shuffled(context/block, 1), [][2]int{{n, context}})
	var r kernels.Result
	for b.Loop() {
		if err := e.Run(step, &r); err != nil {
			b.Fatal(err)
		}
	}
	seconds := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(4*float64(n)*float64(context-n/2)*heads*dim/seconds/1e9, "GFLOP/s")
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
