package cpu

import (
	"encoding/binary"
	"unsafe"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// lanesOf puts dword k of sixteen rows side by side into y[k], with the bits of
// flip changed. Rows of x are stride dwords apart.
func lanesOf(y [][16]uint32, x []uint32, stride int, flip uint32) {
	for lane := range 16 {
		for k, v := range x[lane*stride:][:len(y)] {
			y[k][lane] = v ^ flip
		}
	}
}

// tinyBF16 is the bits of num.Tiny as bf16.
const tinyBF16 = (127 - 50) << 7

// pairsOfBF16 packs rows of bf16, at most sixteen, of in columns, from a column on
// that is a multiple of 32: block by block, so that 16 pieces of 64 bytes become 16
// rows of 64 bytes. What is below num.Tiny becomes zero.
func pairsOfBF16(y, x []byte, in, rows, first int) {
	for at := first; at < in; at += 32 {
		block := (*[256]uint32)(unsafe.Pointer(&y[32*at]))
		pairs := min(32, in-at) / 2
		for lane := range rows {
			row := x[(lane*in+at)*2:][:4*pairs]
			for k := lane; len(row) >= 4; k, row = k+16, row[4:] {
				pair := binary.LittleEndian.Uint32(row)
				if pair&0x7fff < tinyBF16 {
					pair &= 0xffff0000
				}
				if pair>>16&0x7fff < tinyBF16 {
					pair &= 0xffff
				}
				block[k&255] = pair
			}
		}
	}
}

// packInt8 quantises and packs outputs first to last, sixteen at a time. Lanes
// and columns that the matrix does not have are the code of zero.
func (w *weight) packInt8(l *isa, src kernels.Source, first, last int) {
	padded := w.blocks * num.Group
	row, codes := make([]float32, w.in), make([]int8, 16*padded)
	for o := first; o < last; o += 16 {
		lanes := min(16, last-o)
		for i := range lanes {
			num.Row(row, src, o+i)
			w.rows[o+i] = l.codes(codes[i*padded:][:w.in], row)
		}
		clear(codes[lanes*padded:])
		tile := w.data[o/16*w.blocks*blockBytes[kindInt8]:]
		l.lanesOf(unsafe.Slice((*[16]uint32)(unsafe.Pointer(&tile[0])), padded/4),
			unsafe.Slice((*uint32)(unsafe.Pointer(&codes[0])), 4*padded), padded/4, 0x80808080)
	}
}
