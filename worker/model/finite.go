package model

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
	"roundhouse/worker/weights"
)

// allFinite names the first element of a tensor's data, or the first block's,
// that is no finite number. The data begins at element first.
func allFinite(data []byte, t *weights.Tensor, first int64) error {
	kind := storedType(t.Type)
	elements, _ := kind.Block()
	n := -1
	if elements > 1 {
		n = num.BlockFinite(kind, data)
	} else {
		n = finite(data, kind)
	}
	if n < 0 {
		return nil
	}
	return fmt.Errorf("%s: %s: element %d is not a finite number; the file is damaged or was never whole", t.File(), t.Name, first+int64(n)*int64(elements))
}

// finite returns the index of the first element that is NaN or infinite, and
// -1 if there is none. As many threads as there are look through a large matrix: it
// comes from memory, which is slow for one.
func finite(data []byte, t kernels.DType) int {
	const least = 1 << 20 // bytes a thread
	threads := min(runtime.GOMAXPROCS(0), len(data)/least)
	if threads < 2 {
		return finitePart(data, t)
	}
	found, size := make([]int, threads), (len(data)/threads+63)&^63
	var wait sync.WaitGroup
	for i := range threads {
		wait.Go(func() {
			from := i * size
			if found[i] = finitePart(data[from:min(from+size, len(data))], t); found[i] >= 0 {
				found[i] += from / t.Size()
			}
		})
	}
	wait.Wait()
	for _, n := range found {
		if n >= 0 {
			return n
		}
	}
	return -1
}

// finitePart is finite on one thread. A number is NaN or infinite exactly if all bits
// of its exponent are set, so that adding one to the exponent carries into the sign's
// place; that looks at eight bytes at once.
func finitePart(data []byte, t kernels.DType) int {
	var exponent, one uint64
	switch t {
	case kernels.F32:
		exponent, one = 0x7f800000_7f800000, 0x00800000_00800000
	case kernels.BF16:
		exponent, one = 0x7f80_7f80_7f80_7f80, 0x0080_0080_0080_0080
	case kernels.F16:
		exponent, one = 0x7c00_7c00_7c00_7c00, 0x0400_0400_0400_0400
	default:
		return -1
	}
	carry := ^uint64(0) / (1<<(8*t.Size()) - 1) << (8*t.Size() - 1) // the top bit of each element
	size := t.Size()
	at := 0
	for ; at+64 <= len(data); at += 64 {
		words, over := (*[64]byte)(data[at:]), uint64(0)
		for i := 0; i < 64; i += 8 {
			over |= binary.LittleEndian.Uint64(words[i:])&exponent + one
		}
		if over&carry != 0 {
			break
		}
	}
	for ; at < len(data); at += 8 {
		var word uint64
		if at+8 <= len(data) {
			word = binary.LittleEndian.Uint64(data[at:])
		} else {
			var last [8]byte
			copy(last[:], data[at:])
			word = binary.LittleEndian.Uint64(last[:])
		}
		if over := (word&exponent + one) & carry; over != 0 {
			for i := 0; i < 8/size; i++ {
				if over>>(8*size*i)&(1<<(8*size)-1) != 0 {
					return at/size + i
				}
			}
		}
	}
	return -1
}
