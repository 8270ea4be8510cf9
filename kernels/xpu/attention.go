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

// attentionRoom finds how much room a row and split of the largest attention takes.
func (e *executable) attentionRoom() {
	for _, op := range e.p.Ops {
		if a, ok := op.(*kernels.Attention); ok {
			e.perSplit = max(e.perSplit, a.Heads*(a.ValueDim+2))
		}
	}
}

// growParts makes room for the splits of a step. The room follows the longest
// context seen, because the most that pages could hold is rarely asked for.
func (e *executable) growParts(tokens, longest int) error {
	e.splits = (longest + splitTokens - 1) / splitTokens
	need := tokens * e.splits * e.perSplit
	if e.perSplit == 0 || need <= e.partsRoom && e.splits <= e.splitsRoom {
		return nil
	}
	e.splitsRoom = max(e.splits, e.splitsRoom)
	e.partsRoom = max(tokens*e.splitsRoom*e.perSplit, e.partsRoom)
	parts, err := e.b.buffer(4 * int64(e.partsRoom))
	if err != nil {
		return err
	}
	if e.parts != nil {
		e.b.release(e.parts)
	}
	e.parts = parts
	for _, u := range e.usesParts {
		if err := u.launch.kernel.SetBuffer(u.parts, parts); err != nil {
			return err
		}
		if err := u.launch.kernel.SetInt(u.splits, int32(e.splitsRoom)); err != nil {
			return err
		}
	}
	return nil
}

// partsUse names the arguments of a launch that follow the room for splits.
type partsUse struct {
	launch        *launch
	parts, splits int
}

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
	l, rows := &e.layout, e.rowsOf(op.Q)
	spec := kernels.KVSpec{Heads: op.KVHeads, KeyDim: op.KeyDim, ValueDim: op.ValueDim, BlockTokens: 1}
	tables := -1
	if c != nil {
		spec, tables = c.spec, l.tables+op.Group*e.limits.Seqs
	}
	pages := []arg{spec.BlockTokens, spec.Heads, spec.KeyDim, spec.ValueDim, int64(op.Layer) * int64(spec.Blocks)}
	if c != nil {
		e.keep(op.K, op.KFirst, op.KVHeads*op.KeyDim, false, c, pages, tables)
		if op.V != kernels.None {
			e.keep(op.V, op.VFirst, op.KVHeads*op.ValueDim, true, c, pages, tables)
		}
	}
	vWidth := 0
	if op.V != kernels.None {
		vWidth = e.p.Width(op.V)
	}
	shared := op.Heads / op.KVHeads
	size := slices.Index(l.tileRows, e.b.tuning.tileRows(shared))
	args := []arg{e.value(op.Q), e.p.Width(op.Q), op.QFirst, shared,
		e.value(op.K), e.p.Width(op.K), op.KFirst, e.value(op.V), vWidth, op.VFirst}
	if c != nil {
		args = append(args, c.keys, c.values, c.values != nil)
	} else {
		args = append(args, none, none, false)
	}
	pages[3] = op.ValueDim // MLA: the pages have none of their own
	args = append(args, pages...)
	args = append(args, e.step, l.seqs, l.selfs, l.firsts, l.contexts, tables, l.rowTiles+2*size*e.limits.Tokens,
		op.Scale, op.Window, op.SoftCap, op.Bidirectional, none, 0, localFloats(e.b.tuning.Queries*op.KeyDim))
	groups := op.KVHeads * ((shared + e.b.tuning.Queries - 1) / e.b.tuning.Queries)
	e.launch(attendName(c), dims(64, 1, 1), func(counts) []uintptr { return dims(64*e.splits, groups, e.tiled[size]) }, args...)
	e.follows(len(args)-3, len(args)-2)

	sinks, sink := vector(op.Sinks)
	e.launch("merge", nil, func(n counts) []uintptr { return dims(op.ValueDim, op.Heads, rows(n)) },
		none, 0, op.ValueDim, sinks, sink, e.step, l.seqs, l.selfs, l.contexts, op.Bidirectional, e.value(op.Out))
	e.follows(0, 1)
}

// follows notes that the last launch uses the room for splits.
func (e *executable) follows(parts, splits int) {
	if e.err == nil {
		e.usesParts = append(e.usesParts, partsUse{e.launches[len(e.launches)-1], parts, splits})
	}
}

// keep writes the step's keys or values to their pages.
func (e *executable) keep(x kernels.Tensor, first, n int, value bool, c *kv, pages []arg, tables int) {
	to := c.keys
	if value {
		to = c.values
	}
	args := append([]arg{e.value(x), e.p.Width(x), first, value, to, pageType(c.spec.Type)}, pages...)
	args = append(args, e.step, e.layout.seqs, e.layout.selfs, tables)
	if c.spec.Type == kernels.Int8 {
		rows := e.rowsOf(x)
		e.launch("keep_int8", dims(64, 1), func(n counts) []uintptr { return dims(64*c.spec.Heads, rows(n)) }, args...)
		return
	}
	e.launch("keep", nil, e.eachRow(n, x), args...)
}
