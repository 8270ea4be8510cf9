package cpu

import (
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

// packInt8 quantises and packs outputs first to last, sixteen at a time. Lanes
// and columns that the matrix does not have are the code of zero.
func (w *weight) packInt8(l *level, src kernels.Source, first, last int) {
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
