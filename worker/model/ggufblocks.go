package model

import (
	"encoding/binary"
	"math"
	"slices"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
	"roundhouse/worker/weights"
)

// blockTypes are those of GGUF that hold several numbers together, as kernels name
// them.
var blockTypes = map[weights.DType]kernels.DType{
	weights.Q4_0: kernels.Q4_0, weights.Q4_1: kernels.Q4_1, weights.Q5_0: kernels.Q5_0, weights.Q5_1: kernels.Q5_1, weights.Q8_0: kernels.Q8_0,
	weights.Q2_K: kernels.Q2_K, weights.Q3_K: kernels.Q3_K, weights.Q4_K: kernels.Q4_K, weights.Q5_K: kernels.Q5_K, weights.Q6_K: kernels.Q6_K,
	weights.IQ4_NL: kernels.IQ4_NL, weights.IQ4_XS: kernels.IQ4_XS,
}

// isBlocks reports whether tensors of the type are stored in blocks.
func isBlocks(t weights.DType) bool { return blockTypes[t] != kernels.F32 }

// block chooses how a linear's matrix is kept whose pieces are blocks; others stay
// as they were wanted. Blocks of Q4_0 are read by the kernels for groups of 32: they
// stay as they are where sixteen bits or four were asked for and the backend has such
// kernels. Where it has none, four bits are chosen anew for groups of 128.
func (b *binder) block(w *wanted) {
	var types []weights.DType
	for _, p := range w.pieces {
		if t := b.lookup(p.name); t != nil {
			types = append(types, t.Type)
		}
	}
	if !slices.ContainsFunc(types, isBlocks) {
		return
	}
	if len(slices.Compact(slices.Clone(types))) > 1 { // no kernel reads them side by side
		w.format, w.make = blockFormat(w.format), widened(types)
		return
	}
	four := types[0] == weights.Q4_0 && (b.format == kernels.FormatInt4 || blockFormat(b.format) != b.format)
	switch {
	case four && b.fine:
		w.format, w.blocks = kernels.FormatInt4, kernels.Q4_0
	case four && w.format == kernels.FormatInt4:
		w.make = widened(types)
	default:
		w.format = blockFormat(w.format)
	}
}

// widened puts pieces of these types together as floats.
func widened(types []weights.DType) func([][]byte, kernels.DType) (kernels.Source, error) {
	return func(data [][]byte, _ kernels.DType) (kernels.Source, error) {
		var wide []byte
		for i, d := range data {
			for _, v := range decoded(storedType(types[i]), d) {
				wide = binary.LittleEndian.AppendUint32(wide, math.Float32bits(v))
			}
		}
		return kernels.Source{Type: kernels.F32, Data: wide}, nil
	}
}

// decoded is the numbers of blocks, or of floats.
func decoded(stored kernels.DType, data []byte) []float32 {
	elements, bytes := stored.Block()
	x := make([]float32, len(data)/bytes*elements)
	if elements > 1 {
		num.Blocks(x, stored, data)
	} else {
		num.Decode(x, stored, data, 0)
	}
	return x
}

// blockFormat is the format of a matrix that the file has as blocks, where
// sixteen bits were asked for: eight bits, one scale a row. Its rounding is far
// below that of the blocks of four and six bits, and like that of Q8_0.
func blockFormat(asked kernels.Format) kernels.Format {
	if asked == kernels.FormatBF16 || asked == kernels.FormatF16 {
		return kernels.FormatInt8
	}
	return asked
}
