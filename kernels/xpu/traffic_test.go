//go:build pocl

package xpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/xpu/cl"
)

// counted runs a step, which waits once, and then each of its kernels by itself. It
// returns the bytes that they counted, by kernel; those that choose tokens are "choose".
func counted(t *testing.T, b *Backend, e kernels.Executable, s *kernels.Step) map[string]int64 {
	t.Helper()
	var out kernels.Result
	count := func(run func() error) int64 {
		t.Helper()
		err := b.counter.Zero()
		if err == nil {
			err = run()
		}
		raw := make([]byte, 4)
		if err == nil {
			err = b.counter.Read(0, raw)
		}
		if err != nil {
			t.Fatal(err)
		}
		return int64(binary.LittleEndian.Uint32(raw))
	}
	by := map[string]int64{"choose": count(func() error {
		waits, sent := b.ctx.Waits, b.ctx.Sent
		err := e.Run(s, &out)
		if waits = b.ctx.Waits - waits; waits != 1 {
			t.Errorf("a step waited %d times for the device", waits)
		}
		if sent = b.ctx.Sent - sent; sent > 4096 { // of what a step is, never of weights or pages
			t.Errorf("a step sent %d bytes to the device", sent)
		}
		return err
	})}
	c := counts{tokens: len(s.Tokens), sampled: len(s.Rows), seqs: len(s.Seqs)}
	for _, l := range e.(*executable).launches {
		if l.parted != nil || !slices.Contains(l.global(c), 0) { // both kernels of an attention count as the first
			n := count(func() error { return l.run(c) })
			by[l.kernel.Name] += n
			by["choose"] -= n
		}
	}
	return by
}

// near holds a count to the model of testdata/roofline.md: never less, and at most a tenth more.
func near(t *testing.T, what string, got int64, model Traffic) {
	t.Helper()
	ideal := model.Weights + model.Cached
	ratio := float64(got) / float64(ideal)
	t.Logf("%-24s %8d bytes, %.3f of the ideal", what, got, ratio)
	if ratio < 0.98 || ratio > 1.1 {
		t.Errorf("%s moves %d bytes, %.3f times the ideal %d; want 1 to 1.1", what, got, ratio, ideal)
	}
}

// oneSequence is a step of n tokens of one sequence, whose context is then so long.
func oneSequence(n, context, blockTokens int) *kernels.Step {
	s := &kernels.Step{}
	for i := range n {
		s.Tokens, s.Positions = append(s.Tokens, 0), append(s.Positions, int32(context-n+i))
	}
	q := kernels.Seq{Count: int32(n), Context: int32(context), Blocks: [][]int32{nil}}
	for i := 0; i < context; i += blockTokens {
		q.Blocks[0] = append(q.Blocks[0], int32(i/blockTokens))
	}
	s.Seqs = []kernels.Seq{q}
	return s
}

// random is a source of small numbers in the form that a format is loaded from.
func random(out, in int, format kernels.Format) kernels.Source {
	src := kernels.Source{Name: "random", Out: out, In: in, Type: kernels.F32, Data: make([]byte, 4*out*in)}
	for i := range src.Data {
		if i%4 == 3 {
			src.Data[i] = 0x3d
		} else {
			src.Data[i] = byte(i*37 + i>>8*11)
		}
	}
	switch format {
	case kernels.FormatMXFP4:
		src.Type, src.Data = kernels.UInt8, src.Data[:out*in/2]
		src.Scales, src.ScalesType, src.Group = make([]byte, out*in/32), kernels.UInt8, 32
		for i := range src.Scales {
			src.Scales[i] = 120
		}
	case kernels.FormatGPTQ, kernels.FormatAWQ:
		src.Type, src.Data, src.Group = kernels.Int32, src.Data[:out*in/2], 128
		src.Scales, src.ScalesType, src.Zeros = bytes.Repeat([]byte{0x2c}, out*in/128*2), kernels.F16, make([]byte, out*in/128/2)
	}
	return src
}

// add puts a random weight on a backend.
func add(t *testing.T, b *Backend, out, in int, f kernels.Format) kernels.Weight {
	t.Helper()
	if f == kernels.FormatVector {
		in = 1
	}
	w, err := b.Weight(random(out, in, f), f)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// shapeOf is a matrix as add makes it.
func shapeOf(f kernels.Format, out, in int) shape {
	return shape{f, out, in, 128, f == kernels.FormatGPTQ || f == kernels.FormatAWQ}
}

// every is every format of a matrix.
var every = []kernels.Format{kernels.FormatF32, kernels.FormatF16, kernels.FormatBF16, kernels.FormatInt8, kernels.FormatInt4,
	kernels.FormatFP8, kernels.FormatMXFP4, kernels.FormatGPTQ, kernels.FormatAWQ}

// counting is PoCL's tuning for kernels that count, and those of the matrix unit.
var (
	counting = Tuning{Split: 2, Rows: 4, Queries: 8, count: true}
	eight    = Tuning{Split: 2, Rows: 4, Queries: 8, count: true, Lanes: 8, Tiles: 1, Columns: 1}
	sixteen  = Tuning{Split: 2, Rows: 4, Queries: 8, count: true, Lanes: 16, Tiles: 1, Columns: 1}
	prompts  = Tuning{Split: 2, Rows: 4, Queries: 8, count: true, Lanes: 16, Tiles: 4, Columns: 2}
)

// What the linears of a decode step, and those of prompts by the matrix unit, really ask
// memory for.
func TestLinearTraffic(t *testing.T) {
	const out, in = 128, 1024
	for _, c := range []struct {
		tuning  Tuning
		formats []kernels.Format
		rows    int
	}{
		{counting, every, 1},
		{eight, every[2:], 1},
		{sixteen, every[2:], 1},
		{prompts, []kernels.Format{kernels.FormatInt4}, 64},
	} {
		b := open(t, c.tuning)
		for _, f := range c.formats {
			w, table := add(t, b, out, in, f), add(t, b, 1, in, kernels.FormatF32)
			p := &kernels.Program{}
			x, y := p.New(kernels.Tokens, in), p.New(kernels.Tokens, out)
			p.Do(&kernels.Embed{Out: x, Table: table})
			p.Do(&kernels.Linear{In: x, Out: y, Weights: []kernels.Weight{w}, Add: kernels.None})
			p.Do(&kernels.Output{In: y})
			e, err := b.Compile(p, kernels.Limits{Tokens: c.rows, Seqs: 1})
			if err != nil {
				t.Fatal(err)
			}
			together, wide := c.tuning.covers(f, c.rows)
			by := counted(t, b, e, oneSequence(c.rows, c.rows, 16))
			near(t, fmt.Sprintf("%v, %d rows, %d lanes", f, c.rows, c.tuning.Lanes), by[linearName(f, c.rows > 1)],
				linearTraffic(shapeOf(f, out, in), c.rows, together, wide))
		}
	}
}

// What attention asks memory for: pages of every type once for all heads of a group.
func TestAttentionTraffic(t *testing.T) {
	const context, dim = 1500, 64
	b := open(t, counting)
	for _, c := range []struct {
		heads, kvHeads, rows int
		pages                kernels.DType
		stored               int
	}{
		{8, 2, 1, kernels.BF16, 2 * dim}, {8, 1, 1, kernels.BF16, 2 * dim}, {2, 2, 1, kernels.BF16, 2 * dim}, {8, 2, 32, kernels.BF16, 2 * dim},
		{8, 2, 1, kernels.F32, 4 * dim}, {8, 2, 1, kernels.F16, 2 * dim}, {8, 2, 1, kernels.F8E4M3, dim}, {8, 2, 1, kernels.Int8, dim + 4},
	} {
		pages, err := b.KV(kernels.KVSpec{Layers: 1, Blocks: 100, BlockTokens: 16, Heads: c.kvHeads, KeyDim: dim, ValueDim: dim, Type: c.pages})
		if err != nil {
			t.Fatal(err)
		}
		width := (c.heads + 2*c.kvHeads) * dim
		p := &kernels.Program{}
		x, y := p.New(kernels.Tokens, width), p.New(kernels.Tokens, c.heads*dim)
		p.Do(&kernels.Embed{Out: x, Table: add(t, b, 1, width, kernels.FormatF32)})
		p.Do(&kernels.Attention{Q: x, K: x, V: x, KFirst: c.heads * dim, VFirst: (c.heads + c.kvHeads) * dim, Out: y,
			KV: pages, Heads: c.heads, KVHeads: c.kvHeads, KeyDim: dim, ValueDim: dim, Scale: 0.1})
		p.Do(&kernels.Output{In: y})
		e, err := b.Compile(p, kernels.Limits{Tokens: c.rows, Seqs: 1})
		if err != nil {
			t.Fatal(err)
		}
		by := counted(t, b, e, oneSequence(c.rows, context, 16))
		near(t, fmt.Sprintf("%d heads of %d, %d rows, %v", c.heads, c.kvHeads, c.rows, c.pages), by[attendName(pages.(*kv))]+by["merge"],
			counting.attentionTraffic(c.heads, c.kvHeads, dim, c.stored, c.rows, context))
	}
}

// A whole step that decodes: every kernel of it counts, and together they stay within a
// tenth of weights, pages and logits once, in every format. What norms, rounding, RoPE,
// activations and the choice of a token move is in that tenth.
func TestDecodeTraffic(t *testing.T) {
	const hidden, inner, heads, kvHeads, dim, vocab, context = 512, 2048, 8, 2, 64, 8192, 1500
	for _, f := range every {
		b := open(t, counting)
		pages, err := b.KV(kernels.KVSpec{Layers: 1, Blocks: 100, BlockTokens: 16, Heads: kvHeads, KeyDim: dim, ValueDim: dim, Type: kernels.BF16})
		if err != nil {
			t.Fatal(err)
		}
		for _, buf := range []*cl.Buffer{pages.(*kv).keys, pages.(*kv).values} { // what lies there by chance may be no number
			if err := buf.Zero(); err != nil {
				t.Fatal(err)
			}
		}
		p, ideal := &kernels.Program{}, counting.attentionTraffic(heads, kvHeads, dim, 2*dim, 1, context)
		ideal.Weights += 4 * vocab // logits
		linear := func(in, out, more kernels.Tensor, rows ...int) {
			op := &kernels.Linear{In: in, Out: out, Add: more}
			for _, n := range rows {
				op.Weights = append(op.Weights, add(t, b, n, p.Width(in), f))
				together, wide := counting.covers(f, 1)
				ideal.add(linearTraffic(shapeOf(f, n, p.Width(in)), 1, together, wide), 1)
			}
			p.Do(op)
		}
		norm := func(in, out kernels.Tensor) {
			p.Do(&kernels.Norm{In: in, Add: kernels.None, Out: out, Weight: add(t, b, hidden, 1, kernels.FormatVector), Eps: 1e-6})
		}
		tokens := func(width int) kernels.Tensor { return p.New(kernels.Tokens, width) }
		x, y, qkv, attended, both, middle := tokens(hidden), tokens(hidden), tokens((heads+2*kvHeads)*dim), tokens(heads*dim), tokens(2*inner), tokens(inner)
		last, logits := p.New(kernels.Sampled, hidden), p.New(kernels.Sampled, vocab)
		p.Do(&kernels.Embed{Out: x, Table: add(t, b, 1, hidden, kernels.FormatF32)})
		norm(x, y)
		linear(y, qkv, kernels.None, heads*dim, kvHeads*dim, kvHeads*dim)
		p.Do(&kernels.RoPE{X: qkv, Heads: heads + kvHeads, HeadDim: dim, InvFreq: make([]float64, dim/2)})
		p.Do(&kernels.Attention{Q: qkv, K: qkv, V: qkv, KFirst: heads * dim, VFirst: (heads + kvHeads) * dim, Out: attended,
			KV: pages, Heads: heads, KVHeads: kvHeads, KeyDim: dim, ValueDim: dim, Scale: 0.1})
		linear(attended, x, x, hidden)
		norm(x, y)
		linear(y, both, kernels.None, inner, inner)
		p.Do(&kernels.Activate{In: both, Out: middle, Up: true})
		linear(middle, x, x, hidden)
		norm(x, y)
		p.Do(&kernels.Pick{In: y, Out: last})
		linear(last, logits, kernels.None, vocab)
		p.Do(&kernels.Sample{Logits: logits})
		e, err := b.Compile(p, kernels.Limits{Tokens: 1, Seqs: 1, Rows: 1})
		if err != nil {
			t.Fatal(err)
		}
		s := oneSequence(1, context, 16)
		s.Rows, s.Sampling = []int32{0}, []kernels.Sampling{{TopP: 1}}
		all, by := int64(0), counted(t, b, e, s)
		for _, n := range by {
			all += n
		}
		near(t, fmt.Sprintf("a step, %v", f), all, ideal)
		if f == kernels.FormatInt4 {
			t.Logf("by kernel: %v", by)
		}
		near(t, "the choice of a token", by["choose"], Traffic{Weights: 4 * vocab})
		if by["add_rows"]+by["copy_rows"]+by["scale_rows"] > 0 {
			t.Errorf("%v: residuals pass over memory by themselves: %v", f, by)
		}
		if integer(f) { // each value is rounded once, whatever number of matrices reads it
			const columns = hidden + heads*dim + hidden + inner + hidden
			near(t, "rounding", by["quantise"], Traffic{Cached: columns*(4+4+1) + columns/128*8})
		}
	}
}
