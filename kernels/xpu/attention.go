package xpu

import "roundhouse/kernels"

const splitTokens = 256 // tokens that one group attends over

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
	splits := (longest + splitTokens - 1) / splitTokens
	need := tokens * splits * e.perSplit
	if e.perSplit == 0 || need <= e.partsRoom && splits <= e.splitsNow {
		return nil
	}
	e.splitsNow = max(splits, e.splitsNow)
	e.partsRoom = max(tokens*e.splitsNow*e.perSplit, e.partsRoom)
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
		if err := u.launch.kernel.SetInt(u.splits, int32(e.splitsNow)); err != nil {
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

func (e *executable) attention(op *kernels.Attention) {
	e.wrote(op.Out)
	c, _ := op.KV.(*kv)
	l, rows := &e.layout, e.rowsOf(op.Q)
	spec := kernels.KVSpec{Heads: op.KVHeads, KeyDim: op.KeyDim, ValueDim: op.ValueDim, BlockTokens: 1}
	tables, kind := -1, int32(0)
	if c != nil {
		spec, tables, kind = c.spec, l.tables+op.Group*e.limits.Seqs, pageType(c.spec.Type)
	}
	pages := []arg{kind, spec.BlockTokens, spec.Heads, spec.KeyDim, spec.ValueDim, int64(op.Layer) * int64(spec.Blocks)}
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
	args := []arg{e.value(op.Q), e.p.Width(op.Q), op.QFirst, op.Heads / op.KVHeads,
		e.value(op.K), e.p.Width(op.K), op.KFirst, e.value(op.V), vWidth, op.VFirst}
	if c != nil {
		args = append(args, c.keys, c.values, c.values != nil)
	} else {
		args = append(args, none, none, false)
	}
	pages[4] = op.ValueDim // MLA: the pages have none of their own
	args = append(args, pages...)
	args = append(args, e.step, l.seqs, l.selfs, l.firsts, l.contexts, tables,
		op.Scale, op.Window, op.SoftCap, op.Bidirectional, none, 0)
	e.launch("attend", dims(64, 1, 1), func(n counts) []uintptr { return dims(64*e.splitsNow, op.Heads, rows(n)) }, args...)
	e.follows(len(args)-2, len(args)-1)

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
	args := append([]arg{e.value(x), e.p.Width(x), first, value, to}, pages...)
	args = append(args, e.step, e.layout.seqs, e.layout.selfs, tables)
	e.launch("keep", nil, e.eachRow(n, x), args...)
}
