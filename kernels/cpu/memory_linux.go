package cpu

import "golang.org/x/sys/unix"

// huge asks for large pages: a step reads all weights, and small pages would
// cost it a look-up every 64 cache lines. Where there are none it is slower, no
// more.
func huge(m []byte) { _ = unix.Madvise(m, unix.MADV_HUGEPAGE) }

// populate maps the pages of a file at once instead of one fault at a time.
// Where it cannot, they come one by one.
func populate(m []byte) { _ = unix.Madvise(m, unix.MADV_POPULATE_READ) }
