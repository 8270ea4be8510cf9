//go:build unix

package cpu

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"roundhouse/kernels"
)

// Cache names the file that keeps packed weights from one start to the next.
// Processes that use the same file share its memory. The file is this
// machine's: numbers lie in its byte order.
type Cache struct {
	Path string

	// Key says what the weights were made of: the stat of the source files, the
	// digest of their headers, the quantisation. A file with another key, or of
	// another layout, is replaced.
	Key string
}

// layoutVersion is to be raised with every change of a packed layout.
const layoutVersion = 1

// A cache file is sections at multiples of a page, the index as JSON, and a
// tail of 32 bytes: offset, length and CRC32C of the index, and the magic.
const (
	cacheMagic = "rhouse-w"
	cacheTail  = 32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// cacheIndex is what a file holds.
type cacheIndex struct {
	Version int
	Key     string
	Weights []cacheEntry
}

// cacheEntry is one weight; the parts are its slices, as offset and length in
// bytes.
type cacheEntry struct {
	Name                              string
	Format                            kernels.Format
	Out, In, Kind, Tiles, Blocks      int
	Groups, Group                     int
	Vector, Data, Rows, Halves, Zeros [2]int64
	Order                             []int32 `json:",omitempty"`
}

// cache is an open cache file: one that is read, or one that is being made.
type cache struct {
	Cache
	index   cacheIndex
	mapping []byte            // of a file that is read
	byName  map[string]int    // into index.Weights
	file    *os.File          // of a file that is made, under another name
	size    int64             // of it
	maps    map[uintptr]int64 // where each of its mappings lies in it
	failed  error             // why a file that is made could not grow
}

// openCache maps the file if it is of this key, and begins a new one if not.
func openCache(c Cache) (*cache, error) {
	k := &cache{Cache: c, byName: map[string]int{}, maps: map[uintptr]int64{}}
	err := k.read()
	if err == nil {
		return k, nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errStale) {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o755); err != nil {
		return nil, fmt.Errorf("cache of packed weights: %w", err)
	}
	k.file, err = os.CreateTemp(filepath.Dir(c.Path), filepath.Base(c.Path)+".*.tmp")
	if err != nil {
		return nil, fmt.Errorf("cache of packed weights: %w", err)
	}
	k.index = cacheIndex{Version: layoutVersion, Key: c.Key}
	return k, nil
}

// errStale is returned for a file that is not what is wanted: it is replaced.
var errStale = errors.New("the cache file is of other weights, or damaged")

// read maps an existing file.
func (k *cache) read() error {
	f, err := os.Open(k.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size < cacheTail {
		return errStale
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("cannot map %s: %w", k.Path, err)
	}
	if err := k.parse(m); err != nil {
		return errors.Join(err, unix.Munmap(m))
	}
	k.mapping = m
	return nil
}

// parse checks the tail, the index and that every part lies within the file.
func (k *cache) parse(m []byte) error {
	tail := m[len(m)-cacheTail:]
	at, n := binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[8:])
	limit := uint64(len(m) - cacheTail)
	if string(tail[24:]) != cacheMagic || at > limit || n > limit-at {
		return errStale
	}
	text := m[at : at+n]
	if crc32.Checksum(text, castagnoli) != binary.LittleEndian.Uint32(tail[16:]) {
		return errStale
	}
	if err := json.Unmarshal(text, &k.index); err != nil || k.index.Version != layoutVersion || k.index.Key != k.Key {
		return errStale
	}
	for i, e := range k.index.Weights {
		if e.Kind < 0 || e.Kind >= kinds || e.Tiles < 0 || e.Blocks < 0 || e.Data[1] != int64(e.Tiles*e.Blocks*blockBytes[e.Kind]) || 16*e.Tiles < e.Out && e.Data[1] > 0 {
			return errStale
		}
		for _, part := range [][2]int64{e.Vector, e.Data, e.Rows, e.Halves, e.Zeros} {
			if part[0] < 0 || part[1] < 0 || part[0] > int64(at) || part[1] > int64(at)-part[0] || part[0]%64 != 0 {
				return errStale
			}
		}
		k.byName[entryName(e.Name, e.Format)] = i
	}
	return nil
}

func entryName(name string, format kernels.Format) string {
	return fmt.Sprintf("%d %s", format, name)
}

// find returns a weight of a file that is read, or nil.
func (k *cache) find(src kernels.Source, format kernels.Format) *weight {
	i, ok := k.byName[entryName(src.Name, format)]
	if !ok || k.mapping == nil {
		return nil
	}
	e := &k.index.Weights[i]
	if e.Out != src.Out || e.In != src.In {
		return nil
	}
	part := func(p [2]int64) []byte {
		if p[1] == 0 {
			return nil
		}
		return k.mapping[p[0] : p[0]+p[1] : p[0]+p[1]]
	}
	return &weight{format: format, out: e.Out, in: e.In, kind: e.Kind, tiles: e.Tiles, blocks: e.Blocks, groups: e.Groups, group: e.Group,
		vector: floats(part(e.Vector)), data: part(e.Data), rows: floats(part(e.Rows)),
		halves: part(e.Halves), zeros: part(e.Zeros), order: e.Order}
}

// grow adds n bytes to a file that is made, and maps them.
func (k *cache) grow(n int) ([]byte, error) {
	if err := k.file.Truncate(k.size + int64(n)); err != nil {
		return nil, fmt.Errorf("cache of packed weights: %w", err)
	}
	// Sparse blocks that cannot be had later would be a SIGBUS.
	if err := reserve(k.file, k.size, int64(n)); err != nil {
		return nil, fmt.Errorf("cache of packed weights: %w", err)
	}
	m, err := unix.Mmap(int(k.file.Fd()), k.size, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("cannot map the cache of packed weights: %w", err)
	}
	k.maps[uintptr(unsafe.Pointer(&m[0]))] = k.size
	k.size += int64(n)
	return m, nil
}

// add notes a weight that was packed into a file that is made.
func (k *cache) add(a *arena, name string, w *weight) {
	k.index.Weights = append(k.index.Weights, cacheEntry{Name: name, Format: w.format, Out: w.out, In: w.in,
		Kind: w.kind, Tiles: w.tiles, Blocks: w.blocks, Groups: w.groups, Group: w.group, Order: w.order,
		Vector: k.part(a, raw(w.vector)), Data: k.part(a, w.data), Rows: k.part(a, raw(w.rows)),
		Halves: k.part(a, w.halves), Zeros: k.part(a, w.zeros)})
}

// raw sees float32 as bytes.
func raw(x []float32) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))
}

// part is where a slice of the arena lies in the file.
func (k *cache) part(a *arena, b []byte) [2]int64 {
	if len(b) == 0 {
		return [2]int64{}
	}
	at := uintptr(unsafe.Pointer(&b[0]))
	for _, m := range a.maps {
		start := uintptr(unsafe.Pointer(&m[0]))
		if at >= start && at < start+uintptr(len(m)) {
			return [2]int64{k.maps[start] + int64(at-start), int64(len(b))}
		}
	}
	panic("BUG: a weight that is not in the cache file's memory")
}

// finish writes the index and gives the file its name. What was mapped stays.
func (k *cache) finish() error {
	text, err := json.Marshal(&k.index)
	if err != nil {
		return fmt.Errorf("cache of packed weights: %w", err)
	}
	var b bytes.Buffer
	b.Write(text)
	tail := make([]byte, 24, cacheTail)
	binary.LittleEndian.PutUint64(tail, uint64(k.size))
	binary.LittleEndian.PutUint64(tail[8:], uint64(len(text)))
	binary.LittleEndian.PutUint32(tail[16:], crc32.Checksum(text, castagnoli))
	b.Write(append(tail, cacheMagic...))
	if _, err := k.file.WriteAt(b.Bytes(), k.size); err != nil {
		return k.abandon(err)
	}
	if err := k.file.Sync(); err != nil {
		return k.abandon(err)
	}
	if err := os.Rename(k.file.Name(), k.Path); err != nil {
		return k.abandon(err)
	}
	err = k.file.Close()
	k.file = nil
	return err
}

// abandon removes a file that could not be finished.
func (k *cache) abandon(err error) error {
	err = errors.Join(err, k.file.Close(), os.Remove(k.file.Name()))
	k.file = nil
	if err != nil {
		return fmt.Errorf("cache of packed weights: %w", err)
	}
	return nil
}

// close unmaps a file that was read, and removes one that was not finished.
func (k *cache) close() error {
	var err error
	if k.mapping != nil {
		err = unix.Munmap(k.mapping)
		k.mapping = nil
	}
	if k.file != nil {
		err = errors.Join(err, k.abandon(nil))
	}
	return err
}
