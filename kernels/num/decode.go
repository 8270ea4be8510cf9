package num

import (
	"encoding/binary"
	"math"

	"roundhouse/kernels"
)

// Decode reads n stored numbers of type t from data, beginning at element
// first, into dst. Of a type of blocks, first and the length of dst are whole
// blocks.
func Decode(dst []float32, t kernels.DType, data []byte, first int) {
	elements, size := t.Block()
	data = data[first/elements*size:]
	switch t {
	case kernels.F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
	case kernels.BF16:
		for i := range dst {
			dst[i] = FromBF16(binary.LittleEndian.Uint16(data[2*i:]))
		}
	case kernels.F16:
		for i := range dst {
			dst[i] = FromF16(binary.LittleEndian.Uint16(data[2*i:]))
		}
	case kernels.F8E4M3:
		for i := range dst {
			dst[i] = FromE4M3(data[i])
		}
	case kernels.F8E5M2:
		for i := range dst {
			dst[i] = FromE5M2(data[i])
		}
	case kernels.Int8:
		for i := range dst {
			dst[i] = float32(int8(data[i]))
		}
	case kernels.UInt8:
		for i := range dst {
			dst[i] = float32(data[i])
		}
	case kernels.Int32:
		for i := range dst {
			dst[i] = float32(int32(binary.LittleEndian.Uint32(data[4*i:])))
		}
	default:
		if t.Blocks() {
			Blocks(dst, t, data)
			return
		}
		panic("BUG: a weight of type " + t.String())
	}
}
