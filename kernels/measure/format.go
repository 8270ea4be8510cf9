package measure

import (
	"encoding/binary"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// matrix is a way to keep a matrix, and where a model file has it from.
type matrix struct {
	name   string
	format kernels.Format
	source func(out, in int) kernels.Source
	shared bool // on devices its kernel is sym_int4's
}

// matrices are those that linears are measured with.
func matrices() []matrix {
	var all []matrix
	for _, f := range []kernels.Format{kernels.FormatF32, kernels.FormatBF16, kernels.FormatF16, kernels.FormatInt8, kernels.FormatInt4, kernels.FormatFP8} {
		all = append(all, matrix{f.String(), f, numbers, false})
	}
	return append(all,
		matrix{"q4_0", kernels.FormatInt4, q4, true},
		matrix{"mxfp4", kernels.FormatMXFP4, mxfp4, false},
		matrix{"gptq", kernels.FormatGPTQ, groups, true},
		matrix{"gptq in act-order", kernels.FormatGPTQ, actOrder, true},
		matrix{"awq", kernels.FormatAWQ, groups, true})
}

// codes is n bytes of two four-bit codes each.
func codes(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i * 7919 >> 3)
	}
	return data
}

// groups is what GPTQ and AWQ have alike: codes, scales and zero points of
// groups of 128 inputs, which differ in their order alone.
func groups(out, in int) kernels.Source {
	n := out * (in / num.Group)
	src := kernels.Source{Name: "groups", Out: out, In: in, Type: kernels.Int32, Group: num.Group, ScalesType: kernels.F16, Data: codes(out * in / 2), Zeros: codes(n / 2)}
	for range n {
		src.Scales = binary.LittleEndian.AppendUint16(src.Scales, num.F16(1.0/8192))
	}
	return src
}

// actOrder has neighbouring inputs in different groups, as checkpoints that were
// quantised in the order of the activations' sizes.
func actOrder(out, in int) kernels.Source {
	src := groups(out, in)
	for k := range in {
		src.Order = binary.LittleEndian.AppendUint32(src.Order, uint32(k%(in/num.Group)))
	}
	return src
}

// mxfp4 has one power of two for each 32 inputs.
func mxfp4(out, in int) kernels.Source {
	src := kernels.Source{Name: "mxfp4", Out: out, In: in, Type: kernels.UInt8, Data: codes(out * in / 2), Scales: make([]byte, out*in/32)}
	for i := range src.Scales {
		src.Scales[i] = 127 - 10
	}
	return src
}

// q4 is GGUF's Q4_0: a scale before each 32 codes.
func q4(out, in int) kernels.Source {
	src := kernels.Source{Name: "q4_0", Out: out, In: in, Type: kernels.Q4_0, Data: codes(out * in / 32 * 18)}
	for at := 0; at < len(src.Data); at += 18 {
		binary.LittleEndian.PutUint16(src.Data[at:], num.F16(1.0/8192))
	}
	return src
}
