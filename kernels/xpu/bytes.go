package xpu

import "unsafe"

// bytesOfWords is the memory of x, likewise.
func bytesOfWords(x []int32) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))
}

// bytesOfFloats is the memory of x, for the device to write to. Both are
// little-endian on every machine that has such a GPU.
func bytesOfFloats(x []float32) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))
}
