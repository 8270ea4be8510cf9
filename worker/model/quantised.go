package model

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
	"roundhouse/worker/weights"
)

// quantised binds linears of the same shape, one below the other, that the
// checkpoint holds quantised. ok is false if it holds the first as floats.
//
// What is quantised in the file stays as it is, whatever format was asked for,
// except float32, which works the numbers out; and fp8, which float32, int8 and
// sym_int4 are made from.
func (b *binder) quantised(names []string, out, in int) (w wanted, ok bool) {
	if b.quant == nil {
		return wanted{}, false
	}
	w = wanted{out: out * len(names), in: in, format: b.format}
	base := make([]string, len(names))
	for i, n := range names {
		base[i] = strings.TrimSuffix(n, ".weight")
	}
	switch b.quant.method {
	case "gptq":
		return b.gptq(w, base, out), b.has(base[0] + ".qweight")
	case "awq":
		return b.awq(w, base, out), b.has(base[0] + ".qweight")
	case "packed":
		return b.packed(w, base, out), b.has(base[0] + ".weight_packed")
	case "fp8":
		t := b.set.Lookup(names[0])
		return b.fp8(w, base, out), t != nil && t.Type == weights.F8E4M3
	}
	return wanted{}, false
}

// words are the types of packed codes.
var words = []weights.DType{weights.I32, weights.U32}

// gptq is GPTQ's layout: words of eight codes down a column.
func (b *binder) gptq(w wanted, base []string, out int) wanted {
	groups := w.in / b.quant.group
	ordered := b.has(base[0] + ".g_idx")
	for _, n := range base {
		w.pieces = append(w.pieces,
			piece{name: n + ".qweight", shape: []int{w.in / 8, out}, types: words, count: w.in / 8},
			piece{name: n + ".qzeros", shape: []int{groups, out / 8}, types: words, count: groups},
			whole(n+".scales", groups, out))
		if ordered {
			w.pieces = append(w.pieces, piece{name: n + ".g_idx", shape: []int{w.in}, types: words, count: w.in})
		}
	}
	w.make = func(data [][]byte, scales kernels.DType) (kernels.Source, error) {
		each := len(data) / len(base)
		s := b.four(w, data, each, scales)
		s.Data = beside(every(data, each, 0), w.in/8)
		if ordered {
			s.Order = data[3]
			for _, order := range every(data, each, 3) {
				if !bytes.Equal(order, s.Order) {
					return s, errOrders
				}
			}
		}
		return b.native(s, w, kernels.FormatGPTQ)
	}
	w.format = b.fourFormat(kernels.FormatGPTQ)
	return w
}

// awq is AWQ's layout: words of eight outputs along a row.
func (b *binder) awq(w wanted, base []string, out int) wanted {
	groups := w.in / b.quant.group
	for _, n := range base {
		w.pieces = append(w.pieces,
			piece{name: n + ".qweight", shape: []int{w.in, out / 8}, types: words, count: w.in},
			piece{name: n + ".qzeros", shape: []int{groups, out / 8}, types: words, count: groups},
			whole(n+".scales", groups, out))
	}
	w.make = func(data [][]byte, scales kernels.DType) (kernels.Source, error) {
		s := b.four(w, data, 3, scales)
		s.Data = beside(every(data, 3, 0), w.in)
		return b.native(s, w, kernels.FormatAWQ)
	}
	w.format = b.fourFormat(kernels.FormatAWQ)
	return w
}

// packed is the layout of compressed-tensors: codes plus 8 in words along the
// columns. Turned by words, it is GPTQ's with all zero points 8.
func (b *binder) packed(w wanted, base []string, out int) wanted {
	groups := w.in / b.quant.group
	for _, n := range base {
		w.pieces = append(w.pieces,
			piece{name: n + ".weight_packed", shape: []int{out, w.in / 8}, types: words, count: out},
			whole(n+".weight_scale", out, groups))
	}
	w.make = func(data [][]byte, scales kernels.DType) (kernels.Source, error) {
		s := kernels.Source{Name: base[0], Out: w.out, In: w.in, Type: kernels.Int32, Group: b.quant.group, ScalesType: scales,
			Data:   transpose(slices.Concat(every(data, 2, 0)...), w.out, w.in/8, 4),
			Scales: transpose(slices.Concat(every(data, 2, 1)...), w.out, groups, scales.Size()),
			Zeros:  bytes.Repeat([]byte{0x77}, w.out*groups/2)}
		return b.native(s, w, kernels.FormatGPTQ)
	}
	w.format = b.fourFormat(kernels.FormatGPTQ)
	return w
}

// fp8 is one byte a number and a scale for each block, row or tensor.
func (b *binder) fp8(w wanted, base []string, out int) wanted {
	suffix := ".weight_scale"
	if b.has(base[0] + ".weight_scale_inv") {
		suffix = ".weight_scale_inv"
	}
	rows, columns, shape := out, 0, []int{1} // a scale a tensor
	if t := b.set.Lookup(base[0] + suffix); t != nil {
		switch {
		case b.quant.block[0] > 0:
			rows, columns = b.quant.block[0], b.quant.block[1]
			shape = []int{(out + rows - 1) / rows, (w.in + columns - 1) / columns}
		case slices.Equal(t.Shape, []int{out, 1}) || slices.Equal(t.Shape, []int{out}):
			rows, shape = 1, t.Shape
		case len(t.Shape) == 0:
			shape = nil
		}
	}
	if len(base) > 1 && out%rows != 0 {
		b.miss("%s", base[0]+suffix+": a block of scales spans two matrices")
	}
	for _, n := range base {
		w.pieces = append(w.pieces,
			piece{name: n + ".weight", shape: []int{out, w.in}, types: []weights.DType{weights.F8E4M3}, count: out},
			whole(n+suffix, shape...))
	}
	w.make = func(data [][]byte, scales kernels.DType) (kernels.Source, error) {
		return kernels.Source{Type: kernels.F8E4M3, Data: slices.Concat(every(data, 2, 0)...),
			Scales: slices.Concat(every(data, 2, 1)...), ScalesType: scales, GroupRows: rows, Group: columns}, nil
	}
	if b.format == kernels.FormatBF16 || b.format == kernels.FormatF16 {
		w.format = kernels.FormatFP8
	} else {
		w.format = b.linearFormat(w.in)
	}
	return w
}

// four is what GPTQ and AWQ have in common: each pieces a matrix, zero points
// the second of them and scales the third.
func (b *binder) four(w wanted, data [][]byte, each int, scales kernels.DType) kernels.Source {
	groups := w.in / b.quant.group
	return kernels.Source{Name: w.pieces[0].name, Out: w.out, In: w.in, Type: kernels.Int32, Group: b.quant.group, ScalesType: scales,
		Zeros: beside(every(data, each, 1), groups), Scales: beside(every(data, each, 2), groups)}
}

// fourFormat is the format of a matrix whose codes have four bits. Where the
// backend has no kernels for scales of 32 and 64 columns, these are kept as int8,
// one scale a row.
func (b *binder) fourFormat(native kernels.Format) kernels.Format {
	if b.format == kernels.FormatF32 {
		return kernels.FormatF32
	}
	if b.quant.group < int4Group && !b.fine {
		return kernels.FormatInt8
	}
	return native
}

// native returns a source as it is, or worked out to float32.
func (b *binder) native(s kernels.Source, w wanted, format kernels.Format) (kernels.Source, error) {
	if w.format == format {
		return s, nil
	}
	if w.in%b.quant.group != 0 || w.in%8 != 0 || w.out%8 != 0 {
		return s, fmt.Errorf("%d rows, and %d columns in groups of %d; groups must be whole, and words hold eight codes", w.out, w.in, b.quant.group)
	}
	q, err := num.Quantise(s, format)
	if err != nil {
		return s, err
	}
	data := make([]byte, 4*len(q.Codes))
	for i, code := range q.Codes {
		row, column := i/q.In, i%q.In
		scale := row*(q.In/q.Group) + column/q.Group
		if q.Order != nil {
			column = int(q.Order[column])
		}
		v := float32(int(code)-int(q.Zeros[scale])) * q.Scales[scale]
		binary.LittleEndian.PutUint32(data[4*(row*q.In+column):], math.Float32bits(v))
	}
	return kernels.Source{Type: kernels.F32, Data: data}, nil
}
