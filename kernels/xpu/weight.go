package xpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
	"roundhouse/kernels/xpu/cl"
)

const tile = 16 // output columns of a tile of weights

// weight is a matrix or vector in an arena. Offsets count dwords.
type weight struct {
	format  kernels.Format
	out, in int
	arena   *cl.Buffer
	base    int64 // from the arena's begin
	scales  int32 // from base
	zeros   int32 // from base; 0: none
	order   int64 // from the arena's begin; -1: none
	group   int32 // columns a scale; 0: the whole row
	bytes   int64
}

// Shape implements kernels.Weight.
func (w *weight) Shape() (out, in int) { return w.out, w.in }

// Bytes implements kernels.Weight.
func (w *weight) Bytes() int64 { return w.bytes }

// blob is a weight as dwords, before it is given to the device.
type blob struct {
	words  []uint32
	scales int32
	zeros  int32
	order  int64 // from the blob's begin; -1: none
	group  int32
}

// tiles is the number of tiles of a matrix.
func tiles(out int) int { return (out + tile - 1) / tile }

// pack lays a checked source out for the kernels.
func pack(src kernels.Source, format kernels.Format) (blob, error) {
	switch format {
	case kernels.FormatVector:
		return packVector(src), nil
	case kernels.FormatF32:
		return packRows(src, 1, 1, func(row []float32, d int) uint32 { return math.Float32bits(row[d]) }), nil
	case kernels.FormatBF16:
		return packRows(src, 2, 8, func(row []float32, d int) uint32 { return pair(row, d, operand) }), nil
	case kernels.FormatF16:
		return packRows(src, 2, 1, func(row []float32, d int) uint32 { return pair(row, d, num.F16) }), nil
	case kernels.FormatInt8:
		return packInt8(src), nil
	case kernels.FormatFP8:
		return packFP8(src), nil
	case kernels.FormatMXFP4:
		return packMXFP4(src), nil
	case kernels.FormatInt4, kernels.FormatGPTQ, kernels.FormatAWQ:
		return packInt4(src, format)
	}
	return blob{}, fmt.Errorf("weight %s as %v: %w", src.Name, format, errors.ErrUnsupported)
}

// operand is the bf16 of a linear's operand: the least magnitudes are zero.
func operand(x float32) uint16 { return num.BF16(num.Operand(x)) }

// pair puts two elements into a dword; beyond the row is zero.
func pair(row []float32, d int, half func(float32) uint16) uint32 {
	word := uint32(half(row[2*d]))
	if 2*d+1 < len(row) {
		word |= uint32(half(row[2*d+1])) << 16
	}
	return word
}

func packVector(src kernels.Source) blob {
	row := make([]float32, src.Out)
	num.Decode(row, src.Type, src.Data, 0)
	words := make([]uint32, len(row))
	for i, v := range row {
		words[i] = math.Float32bits(v)
	}
	return blob{words: words, order: -1}
}

// place makes room for a matrix of the given dword rows and returns where dword row
// d of output o goes.
func place(out, depth int) (words []uint32, at func(o, d int) int) {
	return make([]uint32, tiles(out)*depth*tile), func(o, d int) int {
		return (o/tile*depth+d)*tile + o%tile
	}
}

// packRows packs a float matrix: per elements a dword, dword rows rounded up to unit.
func packRows(src kernels.Source, per, unit int, word func(row []float32, d int) uint32) blob {
	used := (src.In + per - 1) / per
	words, at := place(src.Out, (used+unit-1)/unit*unit)
	row := make([]float32, src.In)
	for o := range src.Out {
		num.Row(row, src, o)
		for d := range used {
			words[at(o, d)] = word(row, d)
		}
	}
	return blob{words: words, order: -1}
}

// bytesOf packs rows of bytes, 128 columns a unit, and appends scales (tiles,
// columns, tile) that scale returns for each row.
func bytesOf(src kernels.Source, columns int, row func(o int, q []byte, scales []float32)) blob {
	depth := (src.In + 127) / 128 * 32
	words, at := place(src.Out, depth)
	b := blob{scales: int32(len(words)), order: -1}
	scales := make([]uint32, tiles(src.Out)*columns*tile)
	q, s := make([]byte, 4*depth), make([]float32, columns)
	for o := range src.Out {
		clear(q)
		row(o, q[:src.In], s)
		for d := range depth {
			words[at(o, d)] = binary.LittleEndian.Uint32(q[4*d:])
		}
		for c, v := range s {
			scales[(o/tile*columns+c)*tile+o%tile] = math.Float32bits(v)
		}
	}
	b.words = append(words, scales...)
	return b
}

func packInt8(src kernels.Source) blob {
	values, codes := make([]float32, src.In), make([]int8, src.In)
	return bytesOf(src, 1, func(o int, q []byte, scales []float32) {
		num.Row(values, src, o)
		scales[0] = num.Int8Row(codes, values)
		for k, c := range codes {
			q[k] = byte(c)
		}
	})
}

func packFP8(src kernels.Source) blob {
	if src.Type == kernels.F8E4M3 {
		b := bytesOf(src, num.ScaleColumns(src), func(o int, q []byte, scales []float32) {
			copy(q, src.Data[o*src.In:])
			num.ScaleRow(scales, src, o)
		})
		b.group = int32(src.Group)
		return b
	}
	values := make([]float32, src.In)
	return bytesOf(src, 1, func(o int, q []byte, scales []float32) {
		num.Row(values, src, o)
		scales[0] = num.FP8Row(q, values)
	})
}

func packMXFP4(src kernels.Source) blob {
	words, at := place(src.Out, src.In/8)
	b := blob{scales: int32(len(words)), order: -1}
	groups := src.In / 32
	scales := make([]byte, tiles(src.Out)*groups*tile)
	for o := range src.Out {
		for d := range src.In / 8 {
			words[at(o, d)] = binary.LittleEndian.Uint32(src.Data[(o*src.In/8+d)*4:])
		}
		for g := range groups {
			scales[(o/tile*groups+g)*tile+o%tile] = src.Scales[o*groups+g]
		}
	}
	for i := 0; i < len(scales); i += 4 {
		words = append(words, binary.LittleEndian.Uint32(scales[i:]))
	}
	b.words = words
	return b
}

// packInt4 keeps columns 0 to 63 of each 128 in low nibbles, 64 to 127 in high.
func packInt4(src kernels.Source, format kernels.Format) (blob, error) {
	if src.Group > 0 && src.Group < num.Group {
		return blob{}, fmt.Errorf("weight %s as %v: groups of %d: %w; the kernels have groups of %d and multiples of it", src.Name, format, src.Group, errors.ErrUnsupported, num.Group)
	}
	if src.Type == kernels.Q4_0 {
		return blob{}, fmt.Errorf("weight %s as %v: blocks of %v: %w; they can be int8", src.Name, format, src.Type, errors.ErrUnsupported)
	}
	q, err := num.Quantise(src, format)
	if err != nil {
		return blob{}, err
	}
	words, at := place(q.Out, q.In/8)
	columns := q.In / q.Group
	side := make([]uint32, 2*tiles(q.Out)*columns*tile) // scales, then zero points
	half := len(side) / 2
	for o := range q.Out {
		codes := q.Codes[o*q.In:][:q.In]
		for d := range q.In / 8 {
			g, r := d/16*128, d%16*4
			for b := range 4 {
				words[at(o, d)] |= uint32(codes[g+r+b]|codes[g+64+r+b]<<4) << (8 * b)
			}
		}
		for c := range columns {
			i := (o/tile*columns+c)*tile + o%tile
			side[i] = math.Float32bits(q.Scales[o*columns+c])
			if q.Zeros != nil {
				side[half+i] = uint32(q.Zeros[o*columns+c])
			}
		}
	}
	b := blob{scales: int32(len(words)), order: -1, group: int32(q.Group)}
	if q.Zeros == nil {
		side = side[:half]
	} else {
		b.zeros = int32(len(words) + half)
	}
	b.words = append(words, side...)
	if q.Order != nil {
		b.order = int64(len(b.words))
		for _, c := range q.Order {
			b.words = append(b.words, uint32(c))
		}
	}
	return b, nil
}
