package num

import (
	"encoding/binary"

	"roundhouse/kernels"
)

// Blocks decodes GGUF's blocks into dst, which holds whole ones. All fields
// lie in the order given, little-endian; codes of two numbers that share a
// byte are the halves of a run of numbers, not neighbours.
//
//	Q8_0: fp16 d; int8 q[32]                        w = d·q
//	Q4_0: fp16 d; 4 bits q[32]                      w = d·(q - 8)
//	Q4_K: fp16 d, m; 6 bits s[8], t[8]; 4 bits q[256]
//	      w = d·s·q - m·t, with s and t of each 32 numbers
//	Q6_K: 4 bits low[256]; 2 bits high[256]; int8 s[16]; fp16 d
//	      w = d·s·(low + 16·high - 32), with s of each 16 numbers
//
// Products are float32, rounded after each, as those who define the format
// compute them.
func Blocks(dst []float32, t kernels.DType, data []byte) {
	elements, size := t.Block()
	for ; len(dst) > 0; dst, data = dst[elements:], data[size:] {
		switch t {
		case kernels.Q8_0:
			blockQ8(dst[:32], data[:size])
		case kernels.Q4_0:
			blockQ4(dst[:32], data[:size])
		case kernels.Q4_K:
			blockQ4K(dst[:256], data[:size])
		case kernels.Q6_K:
			blockQ6K(dst[:256], data[:size])
		default:
			panic("BUG: " + t.String() + " is no type of blocks")
		}
	}
}

// half reads a number of half precision.
func half(data []byte) float32 { return FromF16(binary.LittleEndian.Uint16(data)) }

func blockQ8(dst []float32, data []byte) {
	d := half(data)
	for i, q := range data[2:] {
		dst[i] = d * float32(int8(q))
	}
}

func blockQ4(dst []float32, data []byte) {
	d := half(data)
	for i, q := range data[2:] {
		dst[i] = d * float32(int(q&15)-8)
		dst[i+16] = d * float32(int(q>>4)-8)
	}
}

// q4 takes a matrix of Q4_0 as it is: blocks are groups of 32 whose zero points are
// 8.
func q4(src kernels.Source) *Int4 {
	const group = 32
	w := &Int4{Out: src.Out, In: src.In, Group: group, Codes: make([]uint8, src.Out*src.In), Scales: make([]float32, src.Out*src.In/group)}
	for i := range w.Scales {
		block, codes := src.Data[18*i:][:18], w.Codes[group*i:][:group]
		w.Scales[i] = half(block)
		for k, q := range block[2:] {
			codes[k], codes[k+16] = q&15, q>>4
		}
	}
	return w
}

func blockQ4K(dst []float32, data []byte) {
	d, m := half(data), half(data[2:])
	packed, codes := data[4:16], data[16:]
	for g := range 8 {
		scale, least := scalesQ4K(packed, g)
		ds, mt := d*float32(scale), m*float32(least)
		shift := g % 2 * 4
		for i, q := range codes[g/2*32:][:32] {
			dst[32*g+i] = float32(ds*float32(q>>shift&15)) - mt
		}
	}
}

// scalesQ4K unpacks the g-th of eight scales and minima, 6 bits each, from 12
// bytes: the first four lie in the low 6 bits of bytes of their own; the others
// have 4 bits in the last four bytes, and the rest above the first eight.
func scalesQ4K(packed []byte, g int) (scale, least uint8) {
	if g < 4 {
		return packed[g] & 63, packed[g+4] & 63
	}
	return packed[g+4]&15 | packed[g-4]>>6<<4, packed[g+4]>>4 | packed[g]>>6<<4
}

func blockQ6K(dst []float32, data []byte) {
	low, high, scales, d := data[:128], data[128:192], data[192:208], half(data[208:])
	for i := range dst {
		part, at := i/128, i%128 // each half of the block has its own bytes
		code := low[64*part+at%64] >> (at / 64 * 4) & 15
		code |= high[32*part+at%32] >> (at / 32 * 2) & 3 << 4
		dst[i] = float32(d*float32(int8(scales[i/16]))) * float32(int(code)-32)
	}
}

// BlockFinite returns the index of the first block whose scales are no finite
// numbers, -1 if there is none.
func BlockFinite(t kernels.DType, data []byte) int {
	_, size := t.Block()
	bad := func(at int) bool { return data[at+1]&0x7c == 0x7c } // the exponent of infinities and NaNs
	for at := 0; at < len(data); at += size {
		switch {
		case t == kernels.Q6_K && bad(at+208), t != kernels.Q6_K && bad(at), t == kernels.Q4_K && bad(at+2):
			return at / size
		}
	}
	return -1
}
