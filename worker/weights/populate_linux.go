package weights

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// populate maps the pages of data, which is part of a mapping, all at once, which
// takes a fraction of what a fault for each of them does. It says whether it could:
// a kernel may not know how, and a page may lie behind the end of the file.
func populate(data []byte) bool {
	if len(data) == 0 {
		return true
	}
	first := unsafe.Pointer(unsafe.SliceData(data))
	before := int(uintptr(first) & uintptr(os.Getpagesize()-1)) // within the page of the first byte
	return unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(first, -before)), before+len(data)), unix.MADV_POPULATE_READ) == nil
}
