package weights

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// populate maps the pages of data, which is part of a mapping, all at once, which
// takes a fraction of what a fault for each of them does; many pages, on as many
// threads as there are. It reports whether it could: a kernel may not know how, and a
// page may lie behind the end of the file.
func populate(data []byte) bool {
	const least = 4 << 20 // bytes a thread; a multiple of every page size
	threads := max(1, min(runtime.GOMAXPROCS(0), len(data)/least))
	size := (len(data)/threads + least - 1) / least * least
	var failed atomic.Bool
	var wait sync.WaitGroup
	for from := 0; from < len(data); from += size {
		part := data[from:min(from+size, len(data))]
		if from+size >= len(data) {
			failed.CompareAndSwap(false, !populatePart(part))
			break
		}
		wait.Go(func() { failed.CompareAndSwap(false, !populatePart(part)) })
	}
	wait.Wait()
	return !failed.Load()
}

// populatePart is populate on one thread, of at least one byte.
func populatePart(data []byte) bool {
	first := unsafe.Pointer(unsafe.SliceData(data))
	before := int(uintptr(first) & uintptr(os.Getpagesize()-1)) // within the page of the first byte
	return unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(first, -before)), before+len(data)), unix.MADV_POPULATE_READ) == nil
}
