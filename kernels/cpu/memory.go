//go:build unix

package cpu

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// arena hands out memory outside the Go heap, so that gigabytes of weights and
// pages cost the garbage collector nothing. Memory comes zeroed, at multiples
// of 64 bytes.
type arena struct {
	maps [][]byte
	free []byte // of the last map
	size int64
}

// more maps n bytes.
func (a *arena) more(n int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("cannot map %d bytes of memory: %w", n, err)
	}
	huge(m)
	return m, nil
}

// memoryChunk is how much is mapped at once for what is smaller; memory is only
// taken as it is touched.
const memoryChunk = 64 << 20

func (a *arena) bytes(n int) ([]byte, error) {
	size := (n + 63) &^ 63
	if size > len(a.free) {
		want := (size + memoryChunk - 1) / memoryChunk * memoryChunk
		m, err := a.more(want)
		if err != nil {
			return nil, err
		}
		a.maps = append(a.maps, m)
		if want-size < len(a.free) { // keep what has more room left
			a.size += int64(size)
			return m[:n:n], nil
		}
		a.free = m
	}
	b := a.free[:n:n]
	a.free = a.free[size:]
	a.size += int64(size)
	return b, nil
}

func (a *arena) close() error {
	var first error
	for _, m := range a.maps {
		if err := unix.Munmap(m); err != nil && first == nil {
			first = fmt.Errorf("cannot unmap %d bytes: %w", len(m), err)
		}
	}
	a.maps, a.free = nil, nil
	return first
}

// of is n elements of a plain type from the arena.
func of[T any](a *arena, n int) ([]T, error) {
	var zero T
	b, err := a.bytes(n * int(unsafe.Sizeof(zero)))
	if err != nil || n == 0 {
		return nil, err
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n), nil
}
