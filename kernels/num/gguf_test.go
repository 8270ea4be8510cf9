package num

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"

	"roundhouse/kernels"
)

// scaled is blocks of random bytes (splitmix64 over FNV-1a of "x") whose
// scales, the high byte of each at one of the offsets, are small numbers.
func scaled(t kernels.DType, blocks int, offsets ...int) []byte {
	const start = 0xaf63f54c86021707 // FNV-1a of "x"
	_, size := t.Block()
	var data []byte
	for i := range (blocks*size + 7) / 8 {
		z := start + uint64(i+1)*0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		data = binary.LittleEndian.AppendUint64(data, z^z>>31)
	}
	data = data[:blocks*size]
	for b := range blocks {
		for _, at := range offsets {
			data[b*size+at] = data[b*size+at]&0x83 | 0x2c
		}
	}
	return data
}

// TestBlocks compares, to the last bit, with dequantize of the Python package
// gguf (0.19.0) on the same bytes: testdata/gguf_checksums.py prints the checksums of
// its float32.
func TestBlocks(t *testing.T) {
	f := func(kind kernels.DType, want uint32, offsets ...int) {
		t.Helper()
		data := scaled(kind, 64, offsets...)
		elements, size := kind.Block()
		x := make([]float32, 64*elements)
		Decode(x, kind, data, 0)
		var raw []byte
		for _, v := range x {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		if got := crc32.ChecksumIEEE(raw); got != want {
			t.Errorf("%v: checksum %#x; want %#x; it begins %v", kind, got, want, x[:3])
		}
		part := make([]float32, elements)
		Decode(part, kind, data, 3*elements)
		for i, v := range part {
			if v != x[3*elements+i] {
				t.Fatalf("%v: number %d of the fourth block is %g alone; %g with the others", kind, i, v, x[3*elements+i])
			}
		}
		if n := BlockFinite(kind, data); n != -1 {
			t.Errorf("%v: block %d is not finite", kind, n)
		}
		data[5*size+offsets[len(offsets)-1]] = 0x7c
		if n := BlockFinite(kind, data); n != 5 {
			t.Errorf("%v: block %d is not finite; want 5", kind, n)
		}
	}
	f(kernels.Q8_0, 0xefb35ecd, 1)
	f(kernels.Q4_0, 0x526e856a, 1)
	f(kernels.Q4_1, 0xb7c41883, 1, 3)
	f(kernels.Q5_0, 0xfcd74bc2, 1)
	f(kernels.Q5_1, 0x95851d8c, 1, 3)
	f(kernels.Q2_K, 0xc2e279ae, 81, 83)
	f(kernels.Q3_K, 0x6442f1a0, 109)
	f(kernels.Q4_K, 0xd2907150, 1, 3)
	f(kernels.Q5_K, 0xd50acbed, 1, 3)
	f(kernels.Q6_K, 0x7017a014, 209)
	f(kernels.IQ4_NL, 0x6e93880e, 1)
	f(kernels.IQ4_XS, 0xa0ac54cc, 1)
}
