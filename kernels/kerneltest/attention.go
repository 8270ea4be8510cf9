package kerneltest

import (
	"math/rand/v2"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// ragged is a step of several sequences; lens is (count, context) of each. The
// pages of every sequence are drawn from blocks, which need not be in order.
func ragged(blockTokens int, blocks []int32, lens [][2]int) *kernels.Step {
	s := &kernels.Step{}
	for _, l := range lens {
		q := kernels.Seq{First: int32(len(s.Tokens)), Count: int32(l[0]), Context: int32(l[1])}
		n := (l[1] + blockTokens - 1) / blockTokens
		q.Blocks = [][]int32{blocks[:n:n]}
		blocks = blocks[n:]
		for i := l[1] - l[0]; i < l[1]; i++ {
			s.Tokens = append(s.Tokens, int32(len(s.Tokens)))
			s.Positions = append(s.Positions, int32(i))
		}
		s.Seqs = append(s.Seqs, q)
	}
	return s
}

// shuffled is the numbers below n in a random order.
func shuffled(n int, seed uint64) []int32 {
	x := make([]int32, n)
	for i, v := range rand.New(rand.NewPCG(seed, 2)).Perm(n) {
		x[i] = int32(v)
	}
	return x
}

// attend is an attention over columns of one value, as a model with a fused
// query, key and value has it.
func (s *scene) attend(op kernels.Attention, n int) {
	s.t.Helper()
	q, k, v := op.Heads*op.KeyDim, op.KVHeads*op.KeyDim, op.KVHeads*op.ValueDim
	op.Q, op.K = s.random(n, 3+q+k+v), 0
	op.K, op.V, op.QFirst, op.KFirst, op.VFirst = op.Q, op.Q, 3, 3+q, 3+q+k
	if op.KV != nil && op.KV.Spec().ValueDim == 0 {
		op.V = kernels.None
	}
	op.Out = s.p.New(kernels.Tokens, op.Heads*op.ValueDim)
	s.p.Do(&op)
	s.p.Do(&kernels.Output{In: op.Out})
}

// pages makes the KV of a test.
func (s *scene) pages(spec kernels.KVSpec) kernels.KV {
	s.t.Helper()
	kv, err := s.b.KV(spec)
	if err != nil {
		s.t.Fatalf("%s: %v", s.b.Name(), err)
	}
	return kv
}

func testAttention(t *testing.T, b kernels.Backend) {
	f := func(label string, spec kernels.KVSpec, op kernels.Attention, sinks bool) {
		t.Run(label, func(t *testing.T) {
			spec.Layers, spec.Blocks, spec.Heads = 2, 1400/spec.BlockTokens+20, op.KVHeads
			spec.KeyDim, op.Layer = op.KeyDim, 1
			if spec.ValueDim >= 0 {
				spec.ValueDim = op.ValueDim
			} else {
				spec.ValueDim = 0
			}
			history := ragged(spec.BlockTokens, shuffled(spec.Blocks, 1), [][2]int{{1, 1}, {40, 40}, {255, 255}, {256, 256}, {600, 600}, {17, 17}})
			next := ragged(spec.BlockTokens, shuffled(spec.Blocks, 1), [][2]int{{1, 2}, {3, 43}, {1, 256}, {2, 258}, {5, 605}, {1, 18}})
			// A page table of a sequence in the second step may need one more
			// page than in the first; both draw from the same order, so the
			// tables of the first step are those of the second.
			for i := range history.Seqs {
				history.Seqs[i].Blocks = next.Seqs[i].Blocks
			}
			results := map[kernels.Backend][2][][]float32{}
			reference := ref.New()
			for _, backend := range []kernels.Backend{b, reference} {
				s := newScene(t, backend, 11)
				op := op
				op.KV = s.pages(spec)
				if sinks {
					op.Sinks = s.vector(op.Heads, 1)
				}
				s.attend(op, len(history.Tokens))
				e := s.compile(kernels.Limits{Tokens: len(history.Tokens), Seqs: len(history.Seqs)})
				first, _ := run(t, e, history)
				second, _ := run(t, e, next)
				results[backend] = [2][][]float32{first, second}
			}
			tol := tolerance{abs: 1e-5, rel: 1e-5}
			tol.close(t, results[b][0], results[reference][0])
			tol.close(t, results[b][1], results[reference][1])
		})
	}
	gqa := kernels.Attention{Heads: 6, KVHeads: 2, KeyDim: 32, ValueDim: 32, Scale: 0.18}
	f("float32", kernels.KVSpec{BlockTokens: 16, Type: kernels.F32}, gqa, false)
	f("bfloat16", kernels.KVSpec{BlockTokens: 16, Type: kernels.BF16}, gqa, false)
	f("fp8", kernels.KVSpec{BlockTokens: 16, Type: kernels.F8E4M3}, gqa, false)
	f("int8", kernels.KVSpec{BlockTokens: 16, Type: kernels.Int8}, gqa, false)
	f("int8, odd", kernels.KVSpec{BlockTokens: 5, Type: kernels.Int8}, kernels.Attention{Heads: 3, KVHeads: 3, KeyDim: 19, ValueDim: 11, Scale: 0.2}, false)
	f("int8, MLA", kernels.KVSpec{BlockTokens: 32, ValueDim: -1, Type: kernels.Int8}, kernels.Attention{Heads: 4, KVHeads: 1, KeyDim: 72, ValueDim: 64, Scale: 0.1}, false)
	f("odd", kernels.KVSpec{BlockTokens: 5, Type: kernels.BF16}, kernels.Attention{Heads: 3, KVHeads: 3, KeyDim: 20, ValueDim: 12, Scale: 0.2}, false)
	f("wide blocks", kernels.KVSpec{BlockTokens: 128, Type: kernels.BF16}, kernels.Attention{Heads: 8, KVHeads: 1, KeyDim: 64, ValueDim: 64, Scale: 0.125}, false)
	f("MLA", kernels.KVSpec{BlockTokens: 32, ValueDim: -1, Type: kernels.BF16}, kernels.Attention{Heads: 4, KVHeads: 1, KeyDim: 72, ValueDim: 64, Scale: 0.1}, false)
	gqa.Window = 50
	f("window", kernels.KVSpec{BlockTokens: 16, Type: kernels.BF16}, gqa, false)
	gqa.Window, gqa.SoftCap = 0, 3
	f("soft cap", kernels.KVSpec{BlockTokens: 16, Type: kernels.BF16}, gqa, false)
	gqa.SoftCap = 0
	f("sinks", kernels.KVSpec{BlockTokens: 16, Type: kernels.BF16}, gqa, true)
}

func testEncoder(t *testing.T, b kernels.Backend) {
	step := ragged(16, shuffled(64, 1), [][2]int{{3, 3}, {1, 1}, {70, 70}, {300, 300}})
	for _, bidirectional := range []bool{true, false} {
		for _, window := range []int{0, 10} {
			got, want, _ := against(t, b, 12, step, func(s *scene) {
				s.attend(kernels.Attention{Heads: 4, KVHeads: 2, KeyDim: 24, ValueDim: 24, Scale: 0.2, Bidirectional: bidirectional, Window: window}, len(step.Tokens))
			})
			tolerance{abs: 1e-5, rel: 1e-5}.close(t, got, want)
		}
	}
}
