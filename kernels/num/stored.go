package num

import (
	"encoding/binary"
	"fmt"

	"roundhouse/kernels"
)

// Int4 is a matrix of four-bit codes: w[o][k] = (code - zero) · scale, where
// scale and zero are those of row o and of the group of column k.
type Int4 struct {
	Out, In, Group int
	Codes          []uint8   // (Out, In), one a byte
	Scales         []float32 // (Out, In/Group)
	Zeros          []uint8   // (Out, In/Group); nil: all 8

	// Order, where the checkpoint sorts columns by their weight: column k of
	// Codes multiplies column Order[k] of the input. nil: in order.
	Order []int32
}

// Check says what is wrong with a source for a format, if anything.
func Check(src kernels.Source, format kernels.Format) error {
	bad := func(f string, args ...any) error {
		return fmt.Errorf("weight %s as %v: "+f, append([]any{src.Name, format}, args...)...)
	}
	if src.Out < 1 || src.In < 1 {
		return bad("shape (%d, %d); both must be at least 1", src.Out, src.In)
	}
	elements, size := src.Type.Block()
	if src.In%elements != 0 {
		return bad("%d columns of %v; they must be a multiple of %d", src.In, src.Type, elements)
	}
	want := src.Out * src.In / elements * size
	switch format {
	case kernels.FormatVector:
		if src.In != 1 {
			return bad("shape (%d, %d); a vector has one column", src.Out, src.In)
		}
	case kernels.FormatF32, kernels.FormatBF16, kernels.FormatF16, kernels.FormatInt8:
	case kernels.FormatFP8:
		if src.Type == kernels.F8E4M3 && src.Scales == nil {
			return bad("no scales in the file")
		}
	case kernels.FormatInt4:
		if src.Type == kernels.Q4_0 {
			break // it has groups of its own
		}
		if src.In%Group != 0 {
			return bad("%d columns; they must be a multiple of %d", src.In, Group)
		}
	case kernels.FormatMXFP4:
		want = src.Out * src.In / 2
		if src.In%32 != 0 || len(src.Scales) != src.Out*src.In/32 {
			return bad("%d columns and %d bytes of scales; there must be one for each 32 columns", src.In, len(src.Scales))
		}
	case kernels.FormatGPTQ, kernels.FormatAWQ:
		want = src.Out * src.In / 2
		group := src.Group
		if group <= 0 {
			group = src.In
		}
		groups := src.In / group
		if src.In%group != 0 || group%Group != 0 && group != 32 && group != 64 || src.Out%8 != 0 {
			return bad("%d rows, %d columns in groups of %d; groups must be 32, 64 or a multiple of %d, and divide the columns, rows of 8", src.Out, src.In, group, Group)
		}
		if n := src.Out * groups * src.ScalesType.Size(); len(src.Scales) != n {
			return bad("%d bytes of scales; want %d", len(src.Scales), n)
		}
		if n := src.Out * groups / 2; len(src.Zeros) != n {
			return bad("%d bytes of zero points; want %d", len(src.Zeros), n)
		}
		if src.Order != nil && len(src.Order) != 4*src.In {
			return bad("%d bytes of column order; want %d", len(src.Order), 4*src.In)
		}
	default:
		return bad("this format is unknown")
	}
	if len(src.Data) != want {
		return bad("%d bytes of data; shape (%d, %d) of %v needs %d", len(src.Data), src.Out, src.In, src.Type, want)
	}
	if src.Scales != nil && format == kernels.FormatFP8 || blockScaled(src) {
		return checkScales(src, bad)
	}
	return nil
}

// blockScaled reports whether the source is an fp8 checkpoint whose values need
// their scales.
func blockScaled(src kernels.Source) bool {
	return src.Scales != nil && (src.Type == kernels.F8E4M3 || src.Type == kernels.F8E5M2)
}

func checkScales(src kernels.Source, bad func(string, ...any) error) error {
	if n := scaleRows(src) * ScaleColumns(src) * src.ScalesType.Size(); len(src.Scales) != n {
		return bad("%d bytes of scales; want %d", len(src.Scales), n)
	}
	if src.Group != 0 && src.Group%Group != 0 {
		return bad("scales of %d columns; they must be a multiple of %d", src.Group, Group)
	}
	return nil
}

func scaleRows(src kernels.Source) int {
	rows := max(src.GroupRows, 1)
	return (src.Out + rows - 1) / rows
}

// ScaleColumns is the number of scales in a row of an fp8 source.
func ScaleColumns(src kernels.Source) int {
	if src.Group == 0 {
		return 1
	}
	return (src.In + src.Group - 1) / src.Group
}

// Row decodes row o of a float source into dst (In), scales applied where the
// source has some.
func Row(dst []float32, src kernels.Source, o int) {
	Decode(dst, src.Type, src.Data, o*src.In)
	if !blockScaled(src) {
		return
	}
	scales := make([]float32, ScaleColumns(src))
	ScaleRow(scales, src, o)
	for k := range dst {
		dst[k] *= scales[ScaleIndex(src, k)]
	}
}

// ScaleRow reads the scales of row o of an fp8 source, one for each Group
// columns.
func ScaleRow(dst []float32, src kernels.Source, o int) {
	Decode(dst, src.ScalesType, src.Scales, o/max(src.GroupRows, 1)*ScaleColumns(src))
}

// ScaleIndex is the scale of column k in a row of an fp8 source.
func ScaleIndex(src kernels.Source, k int) int {
	if src.Group == 0 {
		return 0
	}
	return k / src.Group
}

// Quantise reads or makes the four-bit codes of a checked source.
func Quantise(src kernels.Source, format kernels.Format) (*Int4, error) {
	switch format {
	case kernels.FormatGPTQ:
		return gptq(src)
	case kernels.FormatAWQ:
		return awq(src), nil
	}
	if src.Type == kernels.Q4_0 {
		return q4(src), nil
	}
	groups := src.In / Group
	w := &Int4{Out: src.Out, In: src.In, Group: Group,
		Codes: make([]uint8, src.Out*src.In), Scales: make([]float32, src.Out*groups)}
	row := make([]float32, src.In)
	for o := range src.Out {
		Row(row, src, o)
		for g := range groups {
			at := o*src.In + g*Group
			w.Scales[o*groups+g] = FromF16(SymInt4(w.Codes[at:at+Group], row[g*Group:(g+1)*Group]))
		}
	}
	return w, nil
}

// gptq reads GPTQ's layout: words of eight codes down a column (In/8, Out),
// zero points less one (groups, Out/8), scales (groups, Out).
func gptq(src kernels.Source) (*Int4, error) {
	w, groups := emptyInt4(src)
	order, err := gptqOrder(src, w.Group, groups)
	if err != nil {
		return nil, err
	}
	w.Order = order
	for k := range src.In {
		column := k
		if order != nil {
			column = int(order[k])
		}
		for o := range src.Out {
			word := binary.LittleEndian.Uint32(src.Data[4*(column/8*src.Out+o):])
			w.Codes[o*src.In+k] = uint8(word >> (column % 8 * 4) & 15)
		}
	}
	for g := range groups {
		for o := range src.Out {
			word := binary.LittleEndian.Uint32(src.Zeros[4*(g*src.Out/8+o/8):])
			// Stored 15 stands for zero point 16, as in GPTQ itself.
			w.Zeros[o*groups+g] = uint8(word>>(o%8*4)&15) + 1
		}
	}
	return w, nil
}

// gptqOrder sorts the columns by their group; the sort is stable. Groups must
// come out whole.
func gptqOrder(src kernels.Source, group, groups int) ([]int32, error) {
	if src.Order == nil {
		return nil, nil
	}
	next := make([]int, groups)
	for g := range next {
		next[g] = g * group
	}
	order := make([]int32, src.In)
	plain := true
	for k := range src.In {
		g := int(int32(binary.LittleEndian.Uint32(src.Order[4*k:])))
		if g < 0 || g >= groups || next[g] == (g+1)*group {
			return nil, fmt.Errorf("weight %s as gptq: column %d is of group %d; each of the %d groups must have %d columns", src.Name, k, g, groups, group)
		}
		plain = plain && next[g] == k
		order[next[g]] = int32(k)
		next[g]++
	}
	if plain {
		return nil, nil
	}
	return order, nil
}

// awqLane is the nibble of a word that holds column c of its eight.
var awqLane = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

// awq reads AWQ's layout: words of eight outputs along a row (In, Out/8), zero
// points (groups, Out/8), scales (groups, Out).
func awq(src kernels.Source) *Int4 {
	w, groups := emptyInt4(src)
	code := func(data []byte, row, o int) uint8 {
		word := binary.LittleEndian.Uint32(data[4*(row*src.Out/8+o/8):])
		return uint8(word >> (awqLane[o%8] * 4) & 15)
	}
	for k := range src.In {
		for o := range src.Out {
			w.Codes[o*src.In+k] = code(src.Data, k, o)
		}
	}
	for g := range groups {
		for o := range src.Out {
			w.Zeros[o*groups+g] = code(src.Zeros, g, o)
		}
	}
	return w
}

// emptyInt4 sets an Int4 aside and reads the scales, which are (groups, Out)
// in both layouts.
func emptyInt4(src kernels.Source) (w *Int4, groups int) {
	group := src.Group
	if group <= 0 {
		group = src.In
	}
	groups = src.In / group
	w = &Int4{Out: src.Out, In: src.In, Group: group, Codes: make([]uint8, src.Out*src.In),
		Scales: make([]float32, src.Out*groups), Zeros: make([]uint8, src.Out*groups)}
	row := make([]float32, src.Out)
	for g := range groups {
		Decode(row, src.ScalesType, src.Scales, g*src.Out)
		for o, s := range row {
			w.Scales[o*groups+g] = s
		}
	}
	return w, groups
}
