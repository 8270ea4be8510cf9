package xpu

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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
	f, err := os.CreateTemp(filepath.Dir(e.path), ".xpu-*")
	if err != nil {
		return
	}
	defer os.Remove(f.Name())
	sum := sha256.Sum256(binary)
	_, err = f.Write(bytes.Join([][]byte{[]byte(entryKind), sum[:], binary}, nil))
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil && closed == nil {
		_ = os.Rename(f.Name(), e.path)
	}
}
