package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// atHand has the machine hold free memory for one and a half times a model's file.
// A virtual machine may give what is free for some seconds back to its host, and
// the first touch then waits for the host (here 0.7 to 2.5 s a GB), by which a start
// that packs weights looks several times slower than it is, and one that
// computes from the file's own pages does not.
func atHand(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	const page = 4096
	n := int(info.Size()+info.Size()/2) &^ (page - 1)
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("%d bytes for the starts: %w", n, err)
	}
	if err := unix.Madvise(m, unix.MADV_HUGEPAGE); err != nil { // as weights are
		return err
	}
	for i := 0; i < n; i += page {
		m[i] = 1
	}
	return unix.Munmap(m)
}
