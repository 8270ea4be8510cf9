package cpu

import (
	"encoding/binary"
	"unsafe"

	"roundhouse/kernels/num"
)

// Four-bit weights with a scale and a zero point for each 32 columns (groups of
// 32, and of 64, which are two of the same) lie as those of 128 do; their scales
// and zero points are (tiles, blocks, 4, 16). Those of GGUF's Q4_0 have no zero
// points: all are 8.
const fineGroup = 32

// fine reports whether a kind has scales for each 32 columns.
func fine(kind int) bool { return kind == kindInt4Fine || kind == kindQ4 }

// fineParts is the order in which the parts of 32 columns of a block are added.
var fineParts = [4]int{0, 2, 1, 3}

// multiplyInt4Fine is the kernel in plain Go.
func multiplyInt4Fine(t *tile) {
	var total lanes
	for b := range t.blocks {
		groupFine(t, b, (*[4][16]uint8)(unsafe.Add(t.zeros, b*64)), &total)
	}
	*(*lanes)(t.out) = total
}

// multiplyQ4 is that of weights without zero points.
func multiplyQ4(t *tile) {
	var eights [4][16]uint8
	for i := range eights {
		for j := range eights[i] {
			eights[i][j] = 8
		}
	}
	var total lanes
	for b := range t.blocks {
		groupFine(t, b, &eights, &total)
	}
	*(*lanes)(t.out) = total
}

// groupFine adds one group of 128 columns to the total.
func groupFine(t *tile, b uintptr, zeros *[4][16]uint8, total *lanes) {
	w := (*[16][16][4]uint8)(unsafe.Add(t.w, b*1024))
	a := (*[4][8][4]int8)(unsafe.Add(t.a, b*128))
	scale := *(*float32)(unsafe.Add(t.aux, b*4))
	less := (*[4]int32)(unsafe.Add(t.sums, b*16))
	halves := (*[4][16]uint16)(unsafe.Add(t.scales, b*128))
	for _, part := range fineParts {
		first, shift := part%2*8, part/2*4
		var sum [16]int32
		for r, x := range &a[part] {
			for j := range sum {
				for i, c := range &w[first+r][j] {
					sum[j] += int32(c>>shift&15) * int32(x[i])
				}
			}
		}
		for j := range sum {
			exact := float32(sum[j] + int32(zeros[part][j])*less[part])
			total[j] += float32(exact * float32(scale*num.FromF16(halves[part][j])))
		}
	}
}

// partSums is -Σ of each 32 of a group of activations.
func partSums(sums []int32, q []int8) {
	for p := range sums {
		var sum int32
		for _, v := range q[fineGroup*p:][:fineGroup] {
			sum -= int32(v)
		}
		sums[p] = sum
	}
}

// packFine packs outputs first to last of codes in groups of 32 or 64. Columns
// beyond the last are zeros of scale zero.
func (w *weight) packFine(q *num.Int4, half func(o int, scale float32) (uint16, error), first, last int) error {
	groups := w.in / q.Group
	codes := make([]uint8, num.Group)
	for o := first; o < last; o++ {
		for g := range w.blocks {
			clear(codes)
			copy(codes, q.Codes[o*w.in+g*num.Group:(o+1)*w.in])
			w.putCodes(o, g, codes)
			for part := range 4 {
				column := g*num.Group + part*fineGroup
				if column >= w.in {
					break
				}
				i := o*groups + column/q.Group
				bits, err := half(o, q.Scales[i])
				if err != nil {
					return err
				}
				at := w.finePlace(o, g, part)
				binary.LittleEndian.PutUint16(w.halves[2*at:], bits)
				w.zeros[at] = q.Zeros[i]
			}
		}
	}
	return nil
}

// packQ4 packs outputs first to last of Q4_0, whose blocks have columns i and i+16
// in one byte. Columns beyond the last are zeros of scale zero.
func (w *weight) packQ4(data []byte, first, last int) {
	const size, low = 18, 0x0f0f0f0f
	each := w.in / fineGroup // blocks of an output
	var none [size]byte
	for o := first; o < last; o++ {
		for g := range w.blocks {
			var parts [4][]byte
			for p := range parts {
				parts[p] = none[2:]
				if i := 4*g + p; i < each {
					block := data[(o*each+i)*size:][:size]
					copy(w.halves[2*w.finePlace(o, g, p):], block[:2])
					parts[p] = block[2:]
				}
			}
			lane := w.data[1024*(o/16*w.blocks+g)+4*(o%16):]
			for half := range 2 {
				for r := range 4 {
					a, b := binary.LittleEndian.Uint32(parts[half][4*r:]), binary.LittleEndian.Uint32(parts[2+half][4*r:])
					binary.LittleEndian.PutUint32(lane[64*(8*half+r):], a&low|b&low<<4)
					binary.LittleEndian.PutUint32(lane[64*(8*half+4+r):], a>>4&low|b&^low)
				}
			}
		}
	}
}

// finePlace is where the scale and the zero point of an output's part stand.
func (w *weight) finePlace(o, g, part int) int { return ((o/16*w.blocks+g)*4+part)*16 + o%16 }
