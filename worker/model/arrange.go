package model

import (
	"encoding/binary"
	"errors"
	"math"
)

// transpose turns (rows, columns) of elements of size bytes into (columns, rows).
func transpose(data []byte, rows, columns, size int) []byte {
	out := make([]byte, len(data))
	for c := range columns {
		for r := range rows {
			copy(out[(c*rows+r)*size:][:size], data[(r*columns+c)*size:])
		}
	}
	return out
}

// unpair puts the even ones of rows before the odd ones.
func unpair(data []byte, rows int) []byte {
	out, row := make([]byte, 0, len(data)), len(data)/rows
	for first := range 2 {
		for r := first; r < rows; r += 2 {
			out = append(out, data[r*row:(r+1)*row]...)
		}
	}
	return out
}

// mxGroup is the number of four-bit floats that share a scale in MXFP4.
const mxGroup = 32

// e2m1 are the values of a four-bit float.
var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}

// mxfp4Floats turns blocks of MXFP4, the lower half of a byte first, into
// float32. A scale is a power of two, stored as its exponent plus 127.
func mxfp4Floats(codes, scales []byte) []byte {
	out := make([]byte, 0, 8*len(codes))
	for i, c := range codes {
		scale := float32(math.Ldexp(1, int(scales[i/(mxGroup/2)])-127))
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(e2m1[c&15]*scale))
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(e2m1[c>>4]*scale))
	}
	return out
}

// every is each n-th of data, from first on.
func every(data [][]byte, n, first int) [][]byte {
	var out [][]byte
	for i := first; i < len(data); i += n {
		out = append(out, data[i])
	}
	return out
}

// beside puts matrices of the same number of rows next to each other.
func beside(parts [][]byte, rows int) []byte {
	if len(parts) == 1 {
		return parts[0]
	}
	var out []byte
	for r := range rows {
		for _, p := range parts {
			width := len(p) / rows
			out = append(out, p[r*width:(r+1)*width]...)
		}
	}
	return out
}

// errOrders is what a mixture of experts with act-order gives: gate and up are
// one matrix here, which has one order of columns.
var errOrders = errors.New("gate and up have their columns in different orders (desc_act); such experts are not supported")

// floatsOf reads float32.
func floatsOf(data []byte) []float32 {
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

// bytesOf writes float32.
func bytesOf(list []float32) []byte {
	out := make([]byte, 0, 4*len(list))
	for _, v := range list {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}
