//go:build pocl

package xpu

import (
	"encoding/binary"
	"fmt"
	"testing"

	"roundhouse/kernels"
)

// moved runs a step and returns the bytes that its kernels counted.
func moved(t *testing.T, b *Backend, e kernels.Executable, s *kernels.Step) int64 {
	t.Helper()
	var out kernels.Result
	if err := b.counter.Zero(); err != nil {
		t.Fatal(err)
	}
	before := b.ctx.Waits
	if err := e.Run(s, &out); err != nil {
		t.Fatal(err)
	}
	if waits := b.ctx.Waits - before; waits != 1 {
		t.Errorf("a step waited %d times for the device", waits)
	}
	raw := make([]byte, 4)
	if err := b.counter.Read(0, raw); err != nil {
		t.Fatal(err)
	}
	return int64(binary.LittleEndian.Uint32(raw))
}

// near holds a count to the model of docs/kernels.md: never less, and at most a tenth more.
func near(t *testing.T, what string, got int64, model Traffic) {
	t.Helper()
	ideal := model.Weights + model.Cached
	ratio := float64(got) / float64(ideal)
	t.Logf("%-24s %8d bytes, %.3f of the ideal", what, got, ratio)
	if ratio < 0.98 || ratio > 1.1 {
		t.Errorf("%s moves %d bytes, %.3f times the ideal %d; want 1 to 1.1", what, got, ratio, ideal)
	}
}

// steps of n tokens of one sequence, whose context is then so long.
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
			src.Data[i] = byte(i * 37)
		}
	}
	if format == kernels.FormatMXFP4 {
		src.Type, src.Data = kernels.UInt8, src.Data[:out*in/2]
		src.Scales, src.ScalesType, src.Group = make([]byte, out*in/32), kernels.UInt8, 32
		for i := range src.Scales {
			src.Scales[i] = 120
		}
	}
	return src
}

// What the linears of a decode step, and those of prompts by the matrix unit, really ask
// memory for.
func TestLinearTraffic(t *testing.T) {
	const out, in = 128, 1024
	plain := Tuning{Split: 2, Rows: 4, Queries: 8, count: true}
	eight, sixteen := plain, plain
	eight.Lanes, eight.Tiles, eight.Columns, sixteen.Lanes, sixteen.Tiles, sixteen.Columns = 8, 2, 2, 16, 4, 2
	all := []kernels.Format{kernels.FormatF32, kernels.FormatF16, kernels.FormatBF16, kernels.FormatInt8, kernels.FormatInt4, kernels.FormatFP8, kernels.FormatMXFP4}
	for _, c := range []struct {
		tuning  Tuning
		formats []kernels.Format
		rows    int
	}{
		{plain, all, 1},
		{eight, []kernels.Format{kernels.FormatInt4}, 1},
		{sixteen, []kernels.Format{kernels.FormatBF16, kernels.FormatInt4}, 1},
		{sixteen, []kernels.Format{kernels.FormatInt4}, 64},
	} {
		b := open(t, c.tuning)
		for _, f := range c.formats {
			w, err := b.Weight(random(out, in, f), f)
			if err != nil {
				t.Fatal(err)
			}
			table, err := b.Weight(random(1, in, kernels.FormatF32), kernels.FormatF32)
			if err != nil {
				t.Fatal(err)
			}
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
			near(t, fmt.Sprintf("%v, %d rows, %d lanes", f, c.rows, c.tuning.Lanes), moved(t, b, e, oneSequence(c.rows, c.rows, 16)),
				linearTraffic(shape{f, out, in, 128}, c.rows, together, wide))
		}
	}
}

// What attention asks memory for: pages once for all heads of a group.
func TestAttentionTraffic(t *testing.T) {
	const context, dim = 1500, 64
	tuning := Tuning{Split: 2, Rows: 4, Queries: 8, count: true}
	b := open(t, tuning)
	for _, c := range []struct{ heads, kvHeads, rows int }{{8, 2, 1}, {8, 1, 1}, {2, 2, 1}, {8, 2, 32}} {
		pages, err := b.KV(kernels.KVSpec{Layers: 1, Blocks: 100, BlockTokens: 16, Heads: c.kvHeads, KeyDim: dim, ValueDim: dim, Type: kernels.BF16})
		if err != nil {
			t.Fatal(err)
		}
		width := (c.heads + 2*c.kvHeads) * dim
		table, err := b.Weight(random(1, width, kernels.FormatF32), kernels.FormatF32)
		if err != nil {
			t.Fatal(err)
		}
		p := &kernels.Program{}
		x, y := p.New(kernels.Tokens, width), p.New(kernels.Tokens, c.heads*dim)
		p.Do(&kernels.Embed{Out: x, Table: table})
		p.Do(&kernels.Attention{Q: x, K: x, V: x, KFirst: c.heads * dim, VFirst: (c.heads + c.kvHeads) * dim, Out: y,
			KV: pages, Heads: c.heads, KVHeads: c.kvHeads, KeyDim: dim, ValueDim: dim, Scale: 0.1})
		p.Do(&kernels.Output{In: y})
		e, err := b.Compile(p, kernels.Limits{Tokens: c.rows, Seqs: 1})
		if err != nil {
			t.Fatal(err)
		}
		near(t, fmt.Sprintf("%d heads of %d, %d rows", c.heads, c.kvHeads, c.rows), moved(t, b, e, oneSequence(c.rows, context, 16)),
			tuning.attentionTraffic(c.heads, c.kvHeads, dim, 2, c.rows, context))
	}
}
