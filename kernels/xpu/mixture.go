package xpu

import (
	"encoding/binary"
	"fmt"

	"roundhouse/kernels"
	"roundhouse/kernels/xpu/cl"
)

func (e *executable) moe(op *kernels.MoE) {
	e.wrote(op.Out)
	rows, most := e.rowsOf(op.In), e.limit(e.p.Values[op.In].Rows)
	experts, hidden := len(op.GateUp), e.p.Width(op.Out)
	_, inner := op.Down[0].Shape()
	slots := func(c counts) int { return rows(c) * op.Top }

	scores, choice := e.lend(most*experts), e.lend(most*experts)
	which, weights := e.lend(most*op.Top), e.lend(most*op.Top)
	router := op.Router.(*weight)
	e.multiply(product{w: router, x: e.pack(op.In, router), rows: rows, bias: -1, out: scores, stride: experts, scale: 1})
	biases, bias := vector(op.Bias)
	adds, add := vector(op.RouterAdd)
	e.launch("route", nil, func(c counts) []uintptr { return dims(rows(c)) },
		scores, choice, experts, op.Top, op.Sigmoid, op.TopFirst, op.Normalise, one(op.Scale), max(op.Groups, 1), op.TopGroups,
		biases, bias, adds, add, which, weights)

	both, middle, answers := e.lend(most*op.Top*2*inner), e.lend(most*op.Top*inner), e.lend(most*op.Top*hidden)
	e.experts(op.GateUp, op.GateUpAdd, e.pack(op.In, op.GateUp[0].(*weight)), slots, which, both, op.Top)
	e.launch("activate", nil, func(c counts) []uintptr { return dims(inner, slots(c)) }, both, int32(op.Kind), true, op.Limit, middle)
	x := e.packRows(kernels.None, middle, inner, most*op.Top, slots, op.Down[0].(*weight))
	e.experts(op.Down, op.DownAdd, x, slots, which, answers, 1)
	e.launch("combine", nil, e.eachRow(hidden, op.Out), answers, weights, op.Top, e.value(op.Add), op.Add != kernels.None, e.value(op.Out))
	e.unpack(x)
	e.done(scores, choice, which, weights, both, middle, answers)
}

// experts multiplies each slot's row by the matrix of its expert, once for each
// arena that holds some of them.
func (e *executable) experts(all, adds []kernels.Weight, x *operands, slots func(c counts) int, which, out *cl.Buffer, share int) {
	first := all[0].(*weight)
	bases := map[*cl.Buffer][]int64{}
	var arenas []*cl.Buffer // in order of their first expert
	for i, m := range all {
		w := m.(*weight)
		if w.order >= 0 || w.format != first.format || w.scales != first.scales || w.zeros != first.zeros || w.group != first.group {
			e.err = fmt.Errorf("expert %d of %d has another format than the first, or its columns in another order: %w", i, len(all), errUnsupported)
			return
		}
		if bases[w.arena] == nil {
			arenas = append(arenas, w.arena)
			for range all {
				bases[w.arena] = append(bases[w.arena], -1)
			}
		}
		bases[w.arena][i] = w.base
	}
	vectors, bias := e.expertBiases(adds, first.out)
	for _, arena := range arenas {
		raw := make([]byte, 0, 8*len(all))
		for _, b := range bases[arena] {
			raw = binary.LittleEndian.AppendUint64(raw, uint64(b))
		}
		table := e.room(len(raw) / 4)
		if e.err != nil {
			return
		}
		if e.err = table.Write(0, raw); e.err != nil {
			return
		}
		here := *first
		here.arena = arena
		e.multiply(product{w: &here, x: x, rows: slots, vectors: vectors, bias: bias, out: out, stride: first.out,
			scale: 1, bases: table, which: which, share: share})
	}
}

// expertBiases puts the biases of all experts side by side; (nil, -1) where there
// are none.
func (e *executable) expertBiases(adds []kernels.Weight, n int) (*cl.Buffer, int64) {
	if adds == nil {
		return nil, -1
	}
	buf := e.room(len(adds) * n)
	if e.err != nil {
		return nil, -1
	}
	for i, a := range adds {
		raw := make([]byte, 4*n)
		if a != nil {
			w := a.(*weight)
			if e.err = w.arena.Read(4*w.base, raw); e.err != nil {
				return nil, -1
			}
		}
		if e.err = buf.Write(int64(4*n*i), raw); e.err != nil {
			return nil, -1
		}
	}
	return buf, 0
}

func (e *executable) delta(op *kernels.Delta) {
	e.wrote(op.Out)
	c, l := op.KV.(*kv), &e.layout
	conv := op.Conv.(*weight)
	if conv.format != kernels.FormatF32 {
		e.err = fmt.Errorf("a convolution as %v: %w; it is kept as float32", conv.format, errUnsupported)
		return
	}
	channels, taps := conv.out, conv.in
	floats, state, blocks := c.spec.StateBytes/4, pages{c, &c.state}, firstBlock{c, op.Layer}
	tables := l.tables + op.Group*e.limits.Seqs
	stride, rows := e.p.Width(op.QKV), e.rowsOf(op.QKV)
	mixed := e.lend(e.limits.Tokens * channels)

	e.launch("delta_begin", nil, func(n counts) []uintptr { return dims(floats, n.seqs) },
		state, floats, blocks, e.step, l.counts, l.contexts, tables)
	e.launch("delta_convolve", nil, func(n counts) []uintptr { return dims(channels, rows(n)) },
		e.value(op.QKV), stride, channels, taps, conv.arena, conv.base, state, floats, blocks,
		e.step, l.seqs, l.firsts, tables, mixed)
	e.launch("delta_shift", nil, func(n counts) []uintptr { return dims(channels, n.seqs) },
		e.value(op.QKV), stride, channels, taps, state, floats, blocks, e.step, l.firsts, l.counts, tables)
	logs, aLog := vector(op.ALog)
	dts, dt := vector(op.DtBias)
	e.launch("delta", nil, func(n counts) []uintptr { return dims(op.ValueDim, op.ValueHeads, n.seqs) },
		mixed, channels, e.value(op.Gates), e.p.Width(op.Gates), op.KeyHeads, op.ValueHeads, op.KeyDim, op.ValueDim, taps,
		logs, aLog, dts, dt, state, floats, blocks, e.step, l.firsts, l.counts, tables, e.value(op.Out))
	e.done(mixed)
}
