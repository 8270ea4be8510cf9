// Package statefile replaces files that a program keeps its state in.
package statefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// unfinished begins the names of files that are being written.
const unfinished = ".new-"

// Abandoned reports whether a file was left behind by a Write that was killed. A younger one
// may still be written, by another door with the same folder.
func Abandoned(e fs.DirEntry) bool {
	if !strings.HasPrefix(e.Name(), unfinished) {
		return false
	}
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) > time.Hour
}

// Write puts text in place of a file, for its owner alone (0600). It writes beside the file
// and renames: whoever reads, also after the power was cut, finds the old or the new one whole.
func Write(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), unfinished+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
