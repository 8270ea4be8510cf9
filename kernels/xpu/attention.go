package xpu

import (
	"slices"

	"roundhouse/kernels"
)

const splitTokens = 256 // tokens that one group attends over

// attendName is the kernel for a type of pages; nil: no pages, an encoder.
func attendName(c *kv) string {
	if c == nil {
		return "attend_rows"
	}
	return "attend_" + pageNames[c.spec.Type]
}

var pageNames = map[kernels.DType]string{kernels.F32: "f32", kernels.F16: "f16", kernels.BF16: "bf16", kernels.F8E4M3: "fp8", kernels.Int8: "int8"}

// tileRows is how many rows of a sequence one group serves: as many as have room for
// all heads that share keys, one at least.
func (t Tuning) tileRows(shared int) int { return max(1, t.Queries/shared) }

// rowTiles are the sizes of tiles that a program's attentions want, each once.
func (t Tuning) rowTiles(p *kernels.Program) []int {
	var sizes []int
	for _, op := range p.Ops {
		if a, ok := op.(*kernels.Attention); ok {
			if n := t.tileRows(a.Heads / a.KVHeads); !slices.Contains(sizes, n) {
				sizes = append(sizes, n)
			}
		}
	}
	return sizes
}

func (e *executable) attention(op *kernels.Attention) {
	e.wrote(op.Out)
	c, _ := op.KV.(*kv)
	l := &e.layout
	spec := kernels.KVSpec{Heads: op.KVHeads, KeyDim: op.KeyDim, ValueDim: op.ValueDim, BlockTokens: 1}
	tables := -1
	if c != nil {
		spec, tables = c.spec, l.tables+op.Group*e.limits.Seqs
	}
	at := []arg{spec.BlockTokens, spec.Heads, spec.KeyDim, spec.ValueDim, int64(0)}
	if c != nil {
		at[4] = firstBlock{c, op.Layer}
		e.keep(op.K, op.KFirst, op.KVHeads*op.KeyDim, false, c, at, tables)
		if op.V != kernels.None {
			e.keep(op.V, op.VFirst, op.KVHeads*op.ValueDim, true, c, at, tables)
		}
	}
	vWidth := 0
	if op.V != kernels.None {
		vWidth = e.p.Width(op.V)
	}
	shared := op.Heads / op.KVHeads
	args := []arg{e.value(op.Q), e.p.Width(op.Q), op.QFirst, shared,
		e.value(op.K), e.p.Width(op.K), op.KFirst, e.value(op.V), vWidth, op.VFirst}
	if c != nil {
		args = append(args, pages{c, &c.keys}, pages{c, &c.values}, c.values != nil)
	} else {
		args = append(args, none, none, false)
	}
	at[3] = op.ValueDim // MLA: the pages have none of their own
	args = append(args, at...)
	args = append(args, e.step, l.seqs, l.selfs, l.firsts, l.contexts, tables, 0,
		op.Scale, op.Window, op.SoftCap, op.Bidirectional, e.parts, 0, 0, localFloats(e.b.tuning.Queries*op.KeyDim))
	e.launch(attendName(c), dims(64, 1, 1), nil, args...)
	sinks, sink := vector(op.Sinks)
	e.launch("merge", nil, nil, e.parts, 0, 0, op.ValueDim, sinks, sink, e.step, l.seqs, l.selfs, l.contexts, op.Bidirectional, e.value(op.Out))
	if e.err != nil {
		return
	}
	n := len(e.launches) - 2
	p := &parted{e: e, attend: e.launches[n], merge: e.launches[n+1], op: op,
		size: slices.Index(l.tileRows, e.b.tuning.tileRows(shared)), groups: op.KVHeads * ((shared + e.b.tuning.Queries - 1) / e.b.tuning.Queries)}
	p.attend.parted = p
	e.launches = e.launches[:n+1]
}

// keep writes the step's keys or values to their pages.
func (e *executable) keep(x kernels.Tensor, first, n int, value bool, c *kv, at []arg, tables int) {
	to := pages{c, &c.keys}
	if value {
		to = pages{c, &c.values}
	}
	args := append([]arg{e.value(x), e.p.Width(x), first, value, to, pageType(c.spec.Type)}, at...)
	args = append(args, e.step, e.layout.seqs, e.layout.selfs, tables)
	if c.spec.Type == kernels.Int8 {
		rows := e.rowsOf(x)
		e.launch("keep_int8", dims(64, 1), func(n counts) []uintptr { return dims(64*c.spec.Heads, rows(n)) }, args...)
		return
	}
	e.launch("keep", nil, e.eachRow(n, x), args...)
}
