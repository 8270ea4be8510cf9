package requestlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// file is the newest of a row of files, path, path.1, path.2 …, of which each is full at
// size. Doors that stand side by side write to the same.
type file struct {
	path  string
	size  int64
	files int
	open  *os.File // nil: it is not
}

// Write implements io.Writer: it gets whole lines.
func (f *file) Write(p []byte) (int, error) {
	if err := f.ready(int64(len(p))); err != nil {
		return 0, err
	}
	return f.open.Write(p)
}

// ready opens the newest file, or begins a next one if n more bytes do not fit.
func (f *file) ready(n int64) error {
	if f.open != nil && !f.same() {
		f.close() // another door has begun the next, or somebody has moved it
	}
	if err := f.reopen(); err != nil {
		return err
	}
	info, err := f.open.Stat()
	if err != nil || info.Size() == 0 || info.Size()+n <= f.size {
		return err
	}
	lock, err := os.OpenFile(f.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("%s: %w", lock.Name(), err)
	}
	if f.same() { // else another door was first
		if err := f.shift(); err != nil {
			return err
		}
	}
	f.close()
	return f.reopen()
}

func (f *file) same() bool {
	now, err := os.Stat(f.path)
	was, errWas := f.open.Stat()
	return err == nil && errWas == nil && os.SameFile(now, was)
}

func (f *file) reopen() (err error) {
	if f.open == nil {
		f.open, err = os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	}
	return err
}

// shift renames each file to the next number; the last one is overwritten.
func (f *file) shift() error {
	name := func(n int) string {
		if n == 0 {
			return f.path
		}
		return fmt.Sprintf("%s.%d", f.path, n)
	}
	if f.files == 1 {
		return os.Remove(f.path)
	}
	for n := f.files - 1; n > 0; n-- {
		if err := os.Rename(name(n-1), name(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (f *file) close() {
	if f.open != nil {
		f.open.Close()
		f.open = nil
	}
}
