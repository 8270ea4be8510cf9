package num

import (
	"encoding/binary"

	"roundhouse/kernels"
)

// Blocks decodes GGUF's blocks into dst, which holds whole ones. All fields
// lie in the order given, little-endian; codes of several numbers that share a
// byte are parts of a run of numbers, not neighbours.
//
//	Q8_0: fp16 d; int8 q[32]                        w = d·q
//	Q4_0: fp16 d; 4 bits q[32]                      w = d·(q - 8)
//	Q4_1: fp16 d, m; 4 bits q[32]                   w = d·q + m
//	Q5_0: fp16 d; 1 bit high[32]; 4 bits low[32]    w = d·(low + 16·high - 16)
//	Q5_1: fp16 d, m; 1 bit high[32]; 4 bits low[32] w = d·(low + 16·high) + m
//	Q2_K: 4 bits s[16], t[16]; 2 bits q[256]; fp16 d, m
//	      w = d·s·q - m·t, with s and t of each 16 numbers
//	Q3_K: 1 bit high[256]; 2 bits low[256]; 6 bits s[16]; fp16 d
//	      w = d·(s - 32)·(low + 4·high - 4), with s of each 16 numbers
//	Q4_K: fp16 d, m; 6 bits s[8], t[8]; 4 bits q[256]
//	      w = d·s·q - m·t, with s and t of each 32 numbers
//	Q5_K: fp16 d, m; 6 bits s[8], t[8]; 1 bit high[256]; 4 bits low[256]
//	      w = d·s·(low + 16·high) - m·t, with s and t of each 32 numbers
//	Q6_K: 4 bits low[256]; 2 bits high[256]; int8 s[16]; fp16 d
//	      w = d·s·(low + 16·high - 32), with s of each 16 numbers
//	IQ4_NL: fp16 d; 4 bits q[32]                    w = d·iq4Values[q]
//	IQ4_XS: fp16 d; 6 bits s[8]; 4 bits q[256]
//	      w = d·(s - 32)·iq4Values[q], with s of each 32 numbers
//
// Products are float32, rounded after each, as those who define the format
// compute them.
func Blocks(dst []float32, t kernels.DType, data []byte) {
	if int(t) >= len(blocks) || blocks[t].decode == nil {
		panic("BUG: " + t.String() + " is no type of blocks")
	}
	elements, size := t.Block()
	for ; len(dst) > 0; dst, data = dst[elements:], data[size:] {
		blocks[t].decode(dst[:elements], data[:size])
	}
}

// blocks has the decoder of each type of blocks, and where in a block its scales of
// half precision lie.
var blocks = [...]struct {
	decode func(dst []float32, data []byte)
	scales []int
}{
	kernels.Q4_0:   {blockQ4, []int{0}},
	kernels.Q4_1:   {blockQ41, []int{0, 2}},
	kernels.Q5_0:   {blockQ50, []int{0}},
	kernels.Q5_1:   {blockQ51, []int{0, 2}},
	kernels.Q8_0:   {blockQ8, []int{0}},
	kernels.Q2_K:   {blockQ2K, []int{80, 82}},
	kernels.Q3_K:   {blockQ3K, []int{108}},
	kernels.Q4_K:   {blockQ4K, []int{0, 2}},
	kernels.Q5_K:   {blockQ5K, []int{0, 2}},
	kernels.Q6_K:   {blockQ6K, []int{208}},
	kernels.IQ4_NL: {blockIQ4, []int{0}},
	kernels.IQ4_XS: {blockIQ4XS, []int{0}},
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

func blockQ41(dst []float32, data []byte) {
	d, m := half(data), half(data[2:])
	for i, q := range data[4:] {
		dst[i] = float32(d*float32(q&15)) + m
		dst[i+16] = float32(d*float32(q>>4)) + m
	}
}

// five are the 32 codes of five bits: the fifth lie together before the others.
func five(data []byte) (codes [32]uint8) {
	high := binary.LittleEndian.Uint32(data)
	for i, q := range data[4:20] {
		codes[i] = q&15 | uint8(high>>i&1)<<4
		codes[i+16] = q>>4 | uint8(high>>(i+16)&1)<<4
	}
	return codes
}

func blockQ50(dst []float32, data []byte) {
	d := half(data)
	for i, q := range five(data[2:]) {
		dst[i] = d * float32(int(q)-16)
	}
}

func blockQ51(dst []float32, data []byte) {
	d, m := half(data), half(data[2:])
	for i, q := range five(data[4:]) {
		dst[i] = float32(d*float32(q)) + m
	}
}

// quarter is the i-th of 256 codes of two bits: each half of a block has 32 bytes, and
// each of their pairs of bits 32 numbers.
func quarter(data []byte, i int) uint8 { return data[i/128*32+i%32] >> (i % 128 / 32 * 2) & 3 }

func blockQ2K(dst []float32, data []byte) {
	scales, codes, d, m := data[:16], data[16:80], half(data[80:]), half(data[82:])
	for i := range dst {
		s := scales[i/16]
		dst[i] = float32(float32(d*float32(s&15))*float32(quarter(codes, i))) - float32(m*float32(s>>4))
	}
}

func blockQ3K(dst []float32, data []byte) {
	high, low, packed, d := data[:32], data[32:96], data[96:108], half(data[108:])
	for i := range dst {
		g := i / 16
		scale := packed[g%8]>>(g/8*4)&15 | packed[8+g%4]>>(g/4*2)&3<<4
		code := quarter(low, i) | high[i%32]>>(i/32)&1<<2
		dst[i] = float32(d*float32(int(scale)-32)) * float32(int(code)-4)
	}
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

func blockQ5K(dst []float32, data []byte) {
	d, m := half(data), half(data[2:])
	packed, high, low := data[4:16], data[16:48], data[48:]
	for g := range 8 {
		scale, least := scalesQ4K(packed, g)
		ds, mt := d*float32(scale), m*float32(least)
		for i, q := range low[g/2*32:][:32] {
			code := q>>(g%2*4)&15 | high[i]>>g&1<<4
			dst[32*g+i] = float32(ds*float32(code)) - mt
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

// iq4Values are the numbers that the codes of IQ4 stand for: closer together near zero,
// where most weights are.
var iq4Values = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func blockIQ4(dst []float32, data []byte) {
	d := half(data)
	for i, q := range data[2:] {
		dst[i] = d * iq4Values[q&15]
		dst[i+16] = d * iq4Values[q>>4]
	}
}

func blockIQ4XS(dst []float32, data []byte) {
	d, high, low, codes := half(data), binary.LittleEndian.Uint16(data[2:]), data[4:8], data[8:]
	for g := range 8 {
		scale := low[g/2]>>(g%2*4)&15 | uint8(high>>(2*g)&3)<<4
		ds := d * float32(int(scale)-32)
		for i, q := range codes[16*g:][:16] {
			dst[32*g+i] = ds * iq4Values[q&15]
			dst[32*g+i+16] = ds * iq4Values[q>>4]
		}
	}
}

// BlockFinite returns the index of the first block whose scales are no finite
// numbers, -1 if there is none.
func BlockFinite(t kernels.DType, data []byte) int {
	_, size := t.Block()
	for at := 0; at < len(data); at += size {
		for _, scale := range blocks[t].scales {
			if data[at+scale+1]&0x7c == 0x7c { // the exponent of infinities and NaNs
				return at / size
			}
		}
	}
	return -1
}
