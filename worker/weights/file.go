package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
)

// file is one opened file of a set.
type file struct {
	name   string
	data   []byte
	mapped bool

	// Of mapped files: what the file was when it was opened.
	path string
	info fs.FileInfo
}

// mapFile maps a regular file for reading. It looks before it opens, because
// opening a FIFO waits for a writer, and again afterwards.
func mapFile(path, name string) (*file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(name, info.Mode())
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(name, info.Mode())
	}
	if info.Size() == 0 {
		return nil, fmt.Errorf("%s is empty", name)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("cannot map %s: %w", name, err)
	}
	return &file{name: name, data: data, mapped: true, path: path, info: info}, nil
}

// readFile reads a file of fsys whole.
func readFile(fsys fs.FS, name string) (*file, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(name, info.Mode())
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return &file{name: name, data: data}, nil
}

func notRegular(name string, mode fs.FileMode) error {
	return fmt.Errorf("%s is not a regular file (%s); a model is read from regular files only", name, mode)
}

// unchanged reports whether a mapped file is still what was opened.
func (f *file) unchanged() error {
	if !f.mapped {
		return nil
	}
	now, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("%s changed while it was being read: %w", f.name, err)
	}
	if !os.SameFile(f.info, now) || now.Size() != f.info.Size() || !now.ModTime().Equal(f.info.ModTime()) {
		return fmt.Errorf("%s changed while it was being read; start again", f.name)
	}
	return nil
}

func (f *file) close() error {
	if !f.mapped {
		return nil
	}
	data := f.data
	f.data, f.mapped = nil, false
	return unix.Munmap(data)
}

var errFault = errors.New("memory fault")

// touch brings every page of a mapping into memory. A page behind the end of the
// file faults; touch turns that into errFault.
func touch(data []byte) error {
	if populate(data) {
		return nil
	}
	return guarded(func() error {
		var sum byte
		for i := 0; i < len(data); i += 4096 {
			sum ^= data[i]
		}
		if len(data) > 0 {
			sum ^= data[len(data)-1]
		}
		sink(sum)
		return nil
	})
}

// guarded runs f, which reads a mapping, and returns errFault if it met a page
// behind the end of the file.
func guarded(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if r := recover(); r != nil {
			// Only a fault carries an address; anything else is a bug of ours.
			if _, ok := r.(interface{ Addr() uintptr }); !ok {
				panic(r)
			}
			err = errFault
		}
	}()
	return f()
}

// sink keeps the reads of touch from being removed.
//
//go:noinline
func sink(byte) {}
