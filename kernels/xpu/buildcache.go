package xpu

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"roundhouse/kernels/xpu/cl"
)

// entryKind is the first line of a cached binary, with the version of the file's form.
const entryKind = "roundhouse xpu 1\n"

// cacheEntry is the place of one module's binary: a file named by all that it depends
// on, which holds its own checksum. A cache that cannot be read or written costs time,
// never the start.
type cacheEntry struct{ path string }

// entryOf is the place for a module on a device; nowhere without a folder.
func entryOf(folder string, d cl.Device, m Module) cacheEntry {
	if folder == "" {
		return cacheEntry{}
	}
	what := strings.Join([]string{d.Platform, d.Name, d.Driver, d.Version, m.Key()}, "\x00")
	sum := sha256.Sum256([]byte(what))
	return cacheEntry{filepath.Join(folder, "xpu-"+m.Name+"-"+hex.EncodeToString(sum[:8])+".bin")}
}

// read returns the binary; false where there is none, or a damaged one.
func (e cacheEntry) read() ([]byte, bool) {
	if e.path == "" {
		return nil, false
	}
	data, err := os.ReadFile(e.path)
	if err != nil {
		return nil, false
	}
	rest, ok := bytes.CutPrefix(data, []byte(entryKind))
	if !ok || len(rest) < sha256.Size {
		return nil, false
	}
	sum, binary := rest[:sha256.Size], rest[sha256.Size:]
	if got := sha256.Sum256(binary); !bytes.Equal(got[:], sum) {
		return nil, false
	}
	return binary, true
}

// write keeps a binary: under another name, synced, then renamed, so that a reader sees
// all of it or nothing.
func (e cacheEntry) write(binary []byte) {
	if e.path == "" || os.MkdirAll(filepath.Dir(e.path), 0o755) != nil {
		return
	}
	sum := sha256.Sum256(binary)
	_ = replace(e.path, bytes.Join([][]byte{[]byte(entryKind), sum[:], binary}, nil)) // without it the next start compiles again
}

// replace puts text in place of a file at once: a reader finds the old or the new text
// whole.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".xpu-*")
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
