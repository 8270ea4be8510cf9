package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Limits of a header.
const (
	maxValues  = 1 << 16
	maxTensors = 1 << 20
	maxKey     = 1<<16 - 1 // bytes, as the format has it
	maxString  = 64 << 20  // bytes of one string
	maxList    = 16 << 20  // entries of one list
	maxHeader  = 1 << 30   // bytes of all of it

	defaultAlign = 32
	maxAlign     = 1 << 20
)

// File is the header of a file.
type File struct {
	Version uint32
	Align   int              // of the tensors
	Values  map[string]Value // by key
	Tensors []Tensor         // in the order of the file
}

// Parse reads the header of a file, of which data is all bytes. Its errors say
// at which byte something was found.
func Parse(data []byte) (*File, error) {
	p := &parser{data: data}
	f, err := p.file()
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", p.at, err)
	}
	return f, nil
}

// parser walks over a file.
type parser struct {
	data []byte
	at   int
}

func (p *parser) file() (*File, error) {
	f := &File{Align: defaultAlign, Values: map[string]Value{}}
	tensors, values, err := p.head(f)
	if err != nil {
		return nil, err
	}
	for i := range values {
		if err := p.value(f); err != nil {
			return nil, fmt.Errorf("value %d of %d: %w", i+1, values, err)
		}
	}
	if err := f.readAlign(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i := range tensors {
		t, err := p.tensor(f.Align)
		if err == nil && seen[t.Name] {
			err = fmt.Errorf("tensor %q stands twice", t.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %d of %d: %w", i+1, tensors, err)
		}
		seen[t.Name] = true
		f.Tensors = append(f.Tensors, t)
	}
	base := pad(int64(p.at), int64(f.Align))
	if base > int64(len(p.data)) && tensors > 0 {
		return nil, errEarly
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if t.Begin > math.MaxInt64-base || t.End > math.MaxInt64-base {
			return nil, fmt.Errorf("tensor %q: its offset %d is beyond every file", t.Name, t.Begin)
		}
		t.Begin, t.End = t.Begin+base, t.End+base
	}
	return f, checkCover(f.Tensors, base, int64(len(p.data)), int64(f.Align))
}

// head reads the fixed part: magic, version and counts.
func (p *parser) head(f *File) (tensors, values int, err error) {
	if len(p.data) < 24 {
		return 0, 0, fmt.Errorf("%d bytes are no GGUF file: the fixed part alone takes 24", len(p.data))
	}
	switch {
	case bytes.HasPrefix(p.data, []byte("version https://git-lfs")):
		return 0, 0, errors.New("this is a pointer of Git LFS, not the file itself; fetch it with: git lfs pull")
	case !bytes.HasPrefix(p.data, []byte("GGUF")):
		return 0, 0, fmt.Errorf("the file begins with %q, not with \"GGUF\"", p.data[:4])
	}
	p.at = 4
	f.Version, _ = p.u32()
	switch {
	case f.Version == 1:
		return 0, 0, errors.New("version 1 is not supported; convert the model again, which gives version 3")
	case f.Version&0xffff == 0:
		return 0, 0, errors.New("the file is big-endian, which is not supported")
	case f.Version != 2 && f.Version != 3:
		return 0, 0, fmt.Errorf("version %d is not supported; supported are 2 and 3", f.Version)
	}
	t, _ := p.u64()
	v, _ := p.u64()
	// A tensor takes 24 bytes at least, a value 13.
	if t > maxTensors || t > uint64(p.left()/24) {
		return 0, 0, fmt.Errorf("%d tensors in a file of %d bytes; at most %d are read", t, len(p.data), maxTensors)
	}
	if v > maxValues || v > uint64(p.left()/13) {
		return 0, 0, fmt.Errorf("%d values in a file of %d bytes; at most %d are read", v, len(p.data), maxValues)
	}
	return int(t), int(v), nil
}

// readAlign takes general.alignment.
func (f *File) readAlign() error {
	const key = "general.alignment"
	v, there := f.Values[key]
	if !there {
		return nil
	}
	n, ok := v.(uint32)
	if !ok || n == 0 || n&(n-1) != 0 || n > maxAlign {
		return fmt.Errorf("%s is %v of type %T; want a power of two as uint32, at most %d", key, v, v, maxAlign)
	}
	f.Align = int(n)
	return nil
}

func (p *parser) value(f *File) error {
	key, err := p.text(maxKey)
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	if key == "" || !utf8.ValidString(key) {
		return fmt.Errorf("key %.40q is no name", key)
	}
	if f.Has(key) {
		return fmt.Errorf("key %q stands twice", key)
	}
	kind, err := p.u32()
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if f.Values[key], err = p.typed(kind, true); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func (p *parser) tensor(align int) (Tensor, error) {
	var t Tensor
	var err error
	if t.Name, err = p.text(maxName); err != nil {
		return t, fmt.Errorf("name: %w", err)
	}
	if t.Name == "" || !utf8.ValidString(t.Name) {
		return t, fmt.Errorf("name %.40q is no name", t.Name)
	}
	fail := func(err error) (Tensor, error) { return t, fmt.Errorf("%q: %w", t.Name, err) }
	count, err := p.u32()
	if err != nil {
		return fail(err)
	}
	if count < 1 || count > maxDims {
		return fail(fmt.Errorf("%d dimensions; want 1 to %d", count, maxDims))
	}
	dims := make([]uint64, count)
	for i := range dims {
		if dims[i], err = p.u64(); err != nil {
			return fail(err)
		}
	}
	kind, err := p.u32()
	if err != nil {
		return fail(err)
	}
	t.Type = Type(kind)
	offset, err := p.u64()
	if err != nil {
		return fail(err)
	}
	size, err := t.Type.size(dims)
	if err != nil {
		return fail(err)
	}
	for i := range dims {
		t.Shape = append(t.Shape, int(dims[len(dims)-1-i]))
	}
	if offset%uint64(align) != 0 || offset > math.MaxInt64-size {
		return fail(fmt.Errorf("offset %d; want a multiple of %d within the file", offset, align))
	}
	t.Begin, t.End = int64(offset), int64(offset+size)
	return t, nil
}
