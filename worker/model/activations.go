package model

import (
	"slices"

	"roundhouse/kernels"
)

// activations is the memory of a step at its limits: the greatest sum, over the
// operations of the program, of the values that are alive then and of what the
// operation itself sets aside. Backends give values that are not alive at the
// same time the same memory.
func activations(p *kernels.Program, l kernels.Limits) int64 {
	rows := map[kernels.Rows]int{kernels.Tokens: l.Tokens, kernels.Sampled: l.Rows, kernels.Seqs: l.Seqs, kernels.Frames: l.Frames}
	for kind := kernels.Frames + 1; int(kind) < p.Kinds(); kind++ {
		rows[kind] = rows[p.Base(kind)]
	}
	first, last := make([]int, len(p.Values)), make([]int, len(p.Values))
	for i := range first {
		first[i] = -1
	}
	for i, op := range p.Ops {
		for _, t := range operands(op) {
			if first[t] < 0 {
				first[t] = i
			}
			last[t] = i
		}
	}
	// What begins to live with an operation is added, and what ended is taken off.
	change := make([]int64, len(p.Ops)+1)
	for i, v := range p.Values {
		if first[i] >= 0 {
			n := 4 * int64(rows[v.Rows]) * int64(v.Width)
			change[first[i]] += n
			change[last[i]+1] -= n
		}
	}
	var alive, most int64
	for i, op := range p.Ops {
		alive += change[i]
		most = max(most, alive+aside(op, p, rows))
	}
	return most
}

// operands are the values that an operation reads or writes.
func operands(op kernels.Op) []kernels.Tensor {
	var list []kernels.Tensor
	switch op := op.(type) {
	case *kernels.Embed:
		list = []kernels.Tensor{op.Out}
	case *kernels.Norm:
		list = []kernels.Tensor{op.In, op.Out, op.Add}
	case *kernels.Linear:
		list = []kernels.Tensor{op.In, op.Out, op.Add}
	case *kernels.RoPE:
		list = []kernels.Tensor{op.X}
	case *kernels.Attention:
		list = []kernels.Tensor{op.Q, op.K, op.V, op.Out}
	case *kernels.Activate:
		list = []kernels.Tensor{op.In, op.Out}
	case *kernels.MoE:
		list = []kernels.Tensor{op.In, op.Out, op.Add}
	case *kernels.Scale:
		list = []kernels.Tensor{op.In, op.Gate, op.Add, op.Out}
	case *kernels.Delta:
		list = []kernels.Tensor{op.QKV, op.Gates, op.Out}
	case *kernels.LoRA:
		list = []kernels.Tensor{op.In, op.Out}
	case *kernels.Features:
		list = []kernels.Tensor{op.Out}
	case *kernels.Convolution:
		list = []kernels.Tensor{op.In, op.Out}
	case *kernels.Place:
		list = []kernels.Tensor{op.X}
	case *kernels.Columns:
		list = []kernels.Tensor{op.In, op.Out}
	case *kernels.Pick:
		list = []kernels.Tensor{op.In, op.Out}
	case *kernels.Pool:
		list = []kernels.Tensor{op.In, op.Out}
	case *kernels.Sample:
		list = []kernels.Tensor{op.Logits}
	case *kernels.Output:
		list = []kernels.Tensor{op.In}
	}
	return slices.DeleteFunc(list, func(t kernels.Tensor) bool { return t == kernels.None })
}

// aside is what an operation sets aside for itself: its rows as the format of
// its weights reads them; and what the chosen experts of each row have.
func aside(op kernels.Op, p *kernels.Program, rows map[kernels.Rows]int) int64 {
	switch op := op.(type) {
	case *kernels.Linear:
		n := int64(rows[p.Values[op.In].Rows])
		packed := map[kernels.Format]int64{}
		for _, w := range op.Weights {
			_, in := w.Shape()
			packed[rounding(formatOf(w))] = n * packedRow(formatOf(w), in)
		}
		var sum int64
		for _, each := range packed {
			sum += each
		}
		if op.Add == op.Out && op.Add != kernels.None {
			sum += 4 * n * int64(p.Width(op.Out))
		}
		return sum
	case *kernels.MoE:
		slots := int64(rows[p.Values[op.In].Rows]) * int64(op.Top)
		_, inner := op.Down[0].Shape()
		up, both := packedRow(max(formatOf(op.GateUp[0]), kernels.FormatBF16), p.Width(op.In)), 8*int64(inner)
		down, sums := packedRow(max(formatOf(op.Down[0]), kernels.FormatBF16), inner), 4*int64(p.Width(op.Out))
		return slots * max(up+both, both+down, down+sums)
	case *kernels.Attention:
		if op.KV != nil || !op.Bidirectional {
			return 0
		}
		// An encoder keeps a step's keys and values beside, in blocks of 16.
		return 4 * int64((rows[kernels.Tokens]+15)/16+rows[kernels.Seqs]) * 16 * int64(op.KVHeads*(op.KeyDim+op.ValueDim))
	case *kernels.LoRA:
		n, middle := int64(rows[kernels.Tokens]), int64(0)
		for _, a := range op.Adapters {
			middle += int64((a.Rank() + 15) / 16 * 16)
		}
		return n * (packedRow(kernels.FormatBF16, p.Width(op.In)) + 4*middle)
	case *kernels.Delta:
		channels, _ := op.Conv.Shape()
		return 4 * int64(rows[kernels.Tokens]) * int64(channels)
	}
	return 0
}

// formatOf is the format of a weight of the first pass.
func formatOf(w kernels.Weight) kernels.Format {
	if c, ok := w.(counted); ok {
		return c.format
	}
	return kernels.FormatBF16
}

// rounding is one of the formats that read activations in the same way.
func rounding(f kernels.Format) kernels.Format {
	switch f {
	case kernels.FormatF32, kernels.FormatF16:
		return kernels.FormatF32
	case kernels.FormatInt8, kernels.FormatInt4, kernels.FormatGPTQ, kernels.FormatAWQ:
		return kernels.FormatInt8
	}
	return kernels.FormatBF16
}

// packedRow is a row of activations as a format reads it: float32 as it is,
// bfloat16 in four bytes, int8 with a scale and a sum for each 128 columns.
func packedRow(f kernels.Format, in int) int64 {
	switch rounding(f) {
	case kernels.FormatF32:
		return 0
	case kernels.FormatInt8:
		groups := int64(in+int4Group-1) / int4Group
		return groups * (int4Group + 8)
	}
	return 4 * int64(in)
}
