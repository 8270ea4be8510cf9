package cpu_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
)

// A long context whose splits threads share out gets the bits that it has from
// one thread.
func TestSpread(t *testing.T) {
	const room, long = 1004, 800
	f := func(label string, op kernels.Attention, pages, sinks bool, steps ...[][2]int) {
		t.Helper()
		var want [][]float32
		for _, threads := range []int{1, 7} {
			b := open(t, cpu.Options{Threads: threads})
			b.ShareAll()
			e := attentionAlone(t, b, op, pages, sinks, room)
			var got [][]float32
			for _, counts := range steps {
				got = append(got, attendTo(t, e, counts)...)
			}
			if threads == 1 {
				want = got
			}
			for i := range want {
				if k := slices.IndexFunc(got[i], func(v float32) bool { return v != v }); k >= 0 || !slices.Equal(got[i], want[i]) {
					t.Fatalf("%s, %d threads: row %d is not what one thread computes", label, threads, i)
				}
			}
		}
	}
	gqa := kernels.Attention{Heads: 6, KVHeads: 2, KeyDim: 32, ValueDim: 32, Scale: 0.2}
	whole := [][2]int{{long, long}}
	f("one row", gqa, true, false, whole, [][2]int{{1, long + 1}})
	f("some rows", gqa, true, false, whole, [][2]int{{11, long + 11}})
	f("two sequences", gqa, true, false, [][2]int{{300, 300}, {700, 700}}, [][2]int{{1, 301}, {4, 704}})
	gqa.Window = 600
	f("window", gqa, true, false, whole, [][2]int{{9, long + 9}})
	gqa.Window, gqa.SoftCap = 0, 3
	f("sinks and a soft cap", gqa, true, true, whole, [][2]int{{2, long + 2}})
	f("MLA", kernels.Attention{Heads: 4, KVHeads: 1, KeyDim: 48, ValueDim: 32, Scale: 0.1, V: kernels.None}, true, false, whole, [][2]int{{1, long + 1}})
	f("no pages", kernels.Attention{Heads: 2, KVHeads: 1, KeyDim: 16, ValueDim: 16, Scale: 0.2, Bidirectional: true}, false, false, [][2]int{{100, 100}}, [][2]int{{120, 120}, {17, 17}})
}

// attentionAlone is a program of one attention over random queries, keys and
// values.
func attentionAlone(t *testing.T, b *cpu.Backend, op kernels.Attention, pages, sinks bool, room int) kernels.Executable {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	weight := func(out, in int, format kernels.Format) kernels.Weight {
		src := kernels.Source{Name: "random", Out: out, In: in, Type: kernels.F32}
		for range out * in {
			src.Data = binary.LittleEndian.AppendUint32(src.Data, math.Float32bits(float32(rng.NormFloat64())))
		}
		w, err := b.Weight(src, format)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if pages {
		values := op.ValueDim
		if op.V == kernels.None {
			values = 0
		}
		kv, err := b.KV(kernels.KVSpec{Layers: 1, Blocks: 2 * 52, BlockTokens: 16, Heads: op.KVHeads, KeyDim: op.KeyDim, ValueDim: values, Type: kernels.BF16})
		if err != nil {
			t.Fatal(err)
		}
		op.KV = kv
	}
	if sinks {
		op.Sinks = weight(op.Heads, 1, kernels.FormatVector)
	}
	p := &kernels.Program{}
	q, k := op.Heads*op.KeyDim, op.KVHeads*op.KeyDim
	op.Q = p.New(kernels.Tokens, q+k+op.KVHeads*op.ValueDim)
	op.K, op.KFirst, op.VFirst = op.Q, q, q+k
	if op.V != kernels.None {
		op.V = op.Q
	}
	op.Out = p.New(kernels.Tokens, op.Heads*op.ValueDim)
	p.Do(&kernels.Embed{Out: op.Q, Table: weight(100, p.Width(op.Q), kernels.FormatF32)})
	p.Do(&op)
	p.Do(&kernels.Output{In: op.Out})
	e, err := b.Compile(p, kernels.Limits{Tokens: room, Seqs: 2})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// attendTo runs a step of sequences by (count, context).
func attendTo(t *testing.T, e kernels.Executable, counts [][2]int) (rows [][]float32) {
	t.Helper()
	step, block := &kernels.Step{}, int32(0)
	for _, c := range counts {
		q := kernels.Seq{First: int32(len(step.Tokens)), Count: int32(c[0]), Context: int32(c[1]), Blocks: [][]int32{nil}}
		for range 52 { // the same in every step
			q.Blocks[0] = append(q.Blocks[0], block)
			block++
		}
		for i := c[1] - c[0]; i < c[1]; i++ {
			step.Tokens, step.Positions = append(step.Tokens, int32(i*7%100)), append(step.Positions, int32(i))
		}
		step.Seqs = append(step.Seqs, q)
	}
	var r kernels.Result
	if err := e.Run(step, &r); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Output {
		rows = append(rows, slices.Clone(row))
	}
	return rows
}
