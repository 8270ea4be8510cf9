package cpu

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve makes sure that the disk has room for a part of a file.
func reserve(f *os.File, at, n int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, at, n)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// huge asks for large pages: a step reads all weights, and small pages would
// cost it a look-up every 64 cache lines. Where there are none it is slower, no
// more.
func huge(m []byte) { _ = unix.Madvise(m, unix.MADV_HUGEPAGE) }
