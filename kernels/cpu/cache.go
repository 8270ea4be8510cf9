//go:build unix

package cpu

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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
const layoutVersion = 4

// A cache file is sections at multiples of 64 bytes, the index as JSON, and a
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
// bytes. Sum is the CRC32C of all of them, one after the other.
type cacheEntry struct {
	Name                              string
	Format                            kernels.Format
	Out, In, Kind, Tiles, Blocks      int
	Groups, Group                     int
	Vector, Data, Rows, Halves, Zeros [2]int64
	Order                             []int32 `json:",omitempty"`
	Sum                               uint32
}

// parts is where the slices of a weight lie.
func (e *cacheEntry) parts() [5][2]int64 {
	return [...][2]int64{e.Vector, e.Data, e.Rows, e.Halves, e.Zeros}
}

// sum is the CRC32C of an entry's parts within a file.
func (e *cacheEntry) sum(m []byte) (sum uint32) {
	for _, p := range e.parts() {
		sum = crc32.Update(sum, castagnoli, m[p[0]:p[0]+p[1]])
	}
	return sum
}

// cache is a cache file that is read, or what one is to be made of.
type cache struct {
	Cache
	index   cacheIndex
	mapping []byte         // of a file that is read
	byName  map[string]int // into index.Weights
	packed  []packed       // of a file that is to be made
}

// packed is a weight for the file.
type packed struct {
	name string
	*weight
}

// openCache maps the file if it is of this key.
func openCache(c Cache) (*cache, error) {
	k := &cache{Cache: c, byName: map[string]int{}}
	err := k.read()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errStale) {
		k.index = cacheIndex{Version: layoutVersion, Key: c.Key}
		return k, nil
	}
	return k, err
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
	err = k.parse(m)
	if err == nil && !k.whole(m) {
		err = errStale
	}
	if err != nil {
		return errors.Join(err, unix.Munmap(m))
	}
	k.mapping = m
	return nil
}

// whole reports whether the bytes of all weights are those that were written. It
// reads the whole file, on as many threads as there are, which also brings it
// into memory before the first step needs it.
func (k *cache) whole(m []byte) bool {
	populate(m)
	var next atomic.Int64
	var damaged atomic.Bool
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(k.index.Weights) {
					return
				}
				if e := &k.index.Weights[i]; e.sum(m) != e.Sum {
					damaged.Store(true)
				}
			}
		})
	}
	wait.Wait()
	return !damaged.Load()
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
		for _, part := range e.parts() {
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

// raw sees float32 as bytes.
func raw(x []float32) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))
}

// write makes the file under another name, and renames it when it is whole and
// on the disk. It stops when stop is closed.
func (k *cache) write(stop <-chan struct{}) error {
	f, err := k.begin()
	if err == nil {
		if err = k.fill(f, stop); err == nil {
			err = os.Rename(f.Name(), k.Path)
		}
		err = errors.Join(err, f.Close())
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("cache of packed weights: %w", err)
	}
	return nil
}

// begin makes a new file, and locks it for as long as it is made. What starts
// that were killed have left, nobody has locked: it goes.
func (k *cache) begin() (*os.File, error) {
	dir, base := filepath.Split(k.Path)
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if !strings.HasPrefix(e.Name(), base+".") || !strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			continue // another start has removed it
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			err = os.Remove(name)
		}
		if err = errors.Join(err, f.Close()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	f, err := os.CreateTemp(dir, base+".*.tmp")
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// errStopped is why a file is not finished when the backend is closed.
var errStopped = errors.New("the backend was closed before the file was whole")

// fill writes all weights, the index and the tail.
func (k *cache) fill(f *os.File, stop <-chan struct{}) error {
	w := &sections{f: f}
	for _, p := range k.packed {
		select {
		case <-stop:
			return errStopped
		default:
		}
		e := cacheEntry{Name: p.name, Format: p.format, Out: p.out, In: p.in, Kind: p.kind, Tiles: p.tiles, Blocks: p.blocks,
			Groups: p.groups, Group: p.group, Order: p.order}
		for _, part := range []struct {
			at   *[2]int64
			data []byte
		}{{&e.Vector, raw(p.vector)}, {&e.Data, p.data}, {&e.Rows, raw(p.rows)}, {&e.Halves, p.halves}, {&e.Zeros, p.zeros}} {
			*part.at = w.put(part.data)
			e.Sum = crc32.Update(e.Sum, castagnoli, part.data)
		}
		k.index.Weights = append(k.index.Weights, e)
	}
	text, err := json.Marshal(&k.index)
	if err != nil {
		return err
	}
	at := w.put(text)
	tail := make([]byte, 24, cacheTail)
	binary.LittleEndian.PutUint64(tail, uint64(at[0]))
	binary.LittleEndian.PutUint64(tail[8:], uint64(at[1]))
	binary.LittleEndian.PutUint32(tail[16:], crc32.Checksum(text, castagnoli))
	w.put(append(tail, cacheMagic...))
	if w.err != nil {
		return w.err
	}
	if err := f.Truncate(w.size); err != nil {
		return err
	}
	return f.Sync()
}

// sections writes stretches of a file at multiples of 64 bytes.
type sections struct {
	f    *os.File
	size int64 // where the last one ended
	err  error
}

// put writes one and returns where it lies.
func (s *sections) put(b []byte) [2]int64 {
	if len(b) == 0 || s.err != nil {
		return [2]int64{}
	}
	at := (s.size + 63) &^ 63
	_, s.err = s.f.WriteAt(b, at)
	s.size = at + int64(len(b))
	return [2]int64{at, int64(len(b))}
}

// close unmaps a file that was read.
func (k *cache) close() error {
	if k.mapping == nil {
		return nil
	}
	err := unix.Munmap(k.mapping)
	k.mapping = nil
	return err
}
