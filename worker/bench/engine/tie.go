package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// tie keeps the whole process on one processor: it starts itself again once this
// thread is tied, since threads that are there already are not.
func tie(processor int) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return err
	}
	if set.Count() == 1 && set.IsSet(processor) {
		return nil
	}
	set.Zero()
	set.Set(processor)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, os.Environ())
}
