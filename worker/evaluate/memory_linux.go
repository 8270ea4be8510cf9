package evaluate

import (
	"fmt"
	"reflect"
	"runtime"

	"golang.org/x/sys/unix"
)

// pages maps memory of one node. A kernel without memory nodes has one alone, and gives
// of that.
func pages(size, node int, only bool) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("cannot map %d bytes: %w", size, err)
	}
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE) // where there are none it is slower, no more
	if !only {
		const bind = 2 // MPOL_BIND
		mask := make([]uint64, 16)
		mask[node/64] = 1 << (node % 64)
		_, _, code := unix.Syscall6(unix.SYS_MBIND, reflect.ValueOf(m).Pointer(), uintptr(len(m)), bind, reflect.ValueOf(mask).Pointer(), uintptr(len(mask)*64), 0)
		runtime.KeepAlive(mask)
		if code != 0 {
			_ = unix.Munmap(m)
			return nil, fmt.Errorf("cannot take memory of node %d: %w", node, code)
		}
	}
	for at := 0; at < len(m); at += 4096 {
		m[at] = 1
	}
	return m, nil
}

func unmap(m []byte) { _ = unix.Munmap(m) }

// tie keeps the calling thread on one processor; the thread is to end with its goroutine.
func tie(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("cannot run on processor %d: %w", cpu, err)
	}
	return nil
}
