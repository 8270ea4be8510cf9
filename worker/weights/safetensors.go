package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"unicode/utf8"
)

// Limits of a safetensors header.
const (
	maxHeader = 100_000_000 // bytes, as the format itself has it
	maxRank   = 32          // dimensions of one tensor
	maxNames  = 1 << 20     // tensors of one file
)

// parseSafetensors reads the header of f and returns its tensors in the order
// of their data.
//
// The layout is: 8 bytes N, little-endian; N bytes of JSON; data. The JSON is
// one object, name → {dtype, shape, data_offsets}, with "__metadata__" beside
// them, a flat object of strings.
func parseSafetensors(f *file) ([]*Tensor, error) {
	if len(f.data) < 8 {
		return nil, fmt.Errorf("%s: %d bytes are no safetensors file: the header's length alone takes 8", f.name, len(f.data))
	}
	n := binary.LittleEndian.Uint64(f.data)
	switch {
	case bytes.HasPrefix(f.data, []byte("version https://git-lfs")):
		return nil, fmt.Errorf("%s is a pointer of Git LFS, not the file itself; fetch it with: git lfs pull", f.name)
	case n > maxHeader:
		return nil, fmt.Errorf("%s: header too large: %d bytes, at most %d", f.name, n, maxHeader)
	case n > uint64(len(f.data)-8):
		return nil, fmt.Errorf("%s: header too large: %d bytes in a file of %d; the file is cut short or is no safetensors file", f.name, n, len(f.data))
	case n < 2:
		return nil, fmt.Errorf("%s: header too small: %d bytes", f.name, n)
	}
	header := f.data[8 : 8+n]
	if f.mapped {
		if err := touch(header); err != nil {
			return nil, fmt.Errorf("%s: the file was cut short while its header was being read", f.name)
		}
	}
	if header[0] != '{' {
		return nil, fmt.Errorf("%s: offset 8: header begins with %q, not with '{'", f.name, header[0])
	}
	if !utf8.Valid(header) {
		return nil, fmt.Errorf("%s: header is not UTF-8", f.name)
	}
	p := &headerParser{file: f, dec: json.NewDecoder(bytes.NewReader(header)), base: 8 + int64(n)}
	p.dec.UseNumber()
	if err := p.parse(); err != nil {
		return nil, fmt.Errorf("%s: header offset %d: %w", f.name, p.dec.InputOffset(), err)
	}
	if err := checkCover(p.tensors, p.base, int64(len(f.data))); err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return p.tensors, nil
}

// checkCover sorts the tensors by offset and holds them to the format's rule:
// the data of a file is covered exactly, each byte by one tensor.
func checkCover(tensors []*Tensor, base, size int64) error {
	sort.Slice(tensors, func(i, j int) bool {
		a, b := tensors[i], tensors[j]
		if a.begin != b.begin {
			return a.begin < b.begin
		}
		if a.end != b.end {
			return a.end < b.end
		}
		return a.Name < b.Name
	})
	at := base
	for _, t := range tensors {
		if t.begin < at {
			return fmt.Errorf("tensor %q: data_offsets begin at %d, inside the tensor before it, which ends at %d", t.Name, t.begin-base, at-base)
		}
		if t.begin > at {
			return fmt.Errorf("tensor %q: data_offsets begin at %d and leave a hole from %d", t.Name, t.begin-base, at-base)
		}
		if t.end > size {
			return fmt.Errorf("tensor %q: data_offsets end at %d, but the file has %d bytes of data; it is cut short", t.Name, t.end-base, size-base)
		}
		at = t.end
	}
	if at != size {
		return fmt.Errorf("%d bytes behind the last tensor belong to none", size-at)
	}
	return nil
}

// headerParser walks the JSON token by token, because duplicate keys have to
// be seen and nothing but the expected nesting may be allowed.
type headerParser struct {
	file    *file
	dec     *json.Decoder
	base    int64 // where the data begins
	tensors []*Tensor
}

func (p *headerParser) parse() error {
	if err := p.delim('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		name, err := p.key(seen)
		if err != nil {
			return err
		}
		if name == "__metadata__" {
			err = p.metadata()
		} else {
			err = p.tensor(name)
		}
		if err != nil {
			return err
		}
		if len(p.tensors) > maxNames {
			return fmt.Errorf("more than %d tensors in one file", maxNames)
		}
	}
	if err := p.delim('}'); err != nil {
		return err
	}
	if _, err := p.dec.Token(); err != io.EOF {
		return fmt.Errorf("something follows the header's object")
	}
	return nil
}

func (p *headerParser) metadata() error {
	if err := p.delim('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		key, err := p.key(seen)
		if err != nil {
			return err
		}
		tok, err := p.token()
		if err != nil {
			return err
		}
		if _, ok := tok.(string); !ok {
			return fmt.Errorf("__metadata__ %q: want a string, found %v", key, tok)
		}
	}
	return p.delim('}')
}

func (p *headerParser) tensor(name string) error {
	t := &Tensor{Name: name, file: p.file}
	if err := p.delim('{'); err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	var offsets []int
	seen := map[string]bool{}
	for p.dec.More() {
		key, err := p.key(seen)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		switch key {
		case "dtype":
			var tok json.Token
			if tok, err = p.token(); err == nil {
				s, _ := tok.(string)
				t.Type = DType(s)
				if t.Type.Bits() == 0 {
					err = fmt.Errorf("unknown type %v", tok)
				}
			}
		case "shape":
			t.Shape, err = p.integers(maxRank)
		case "data_offsets":
			offsets, err = p.integers(2)
		default:
			err = fmt.Errorf("unknown field")
		}
		if err != nil {
			return fmt.Errorf("tensor %q: %s: %w", name, key, err)
		}
	}
	if err := p.delim('}'); err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	if len(seen) != 3 {
		return fmt.Errorf("tensor %q: dtype, shape and data_offsets must all be there", name)
	}
	return p.place(t, offsets)
}

// place checks the offsets of a tensor against its shape and appends it.
func (p *headerParser) place(t *Tensor, offsets []int) error {
	if len(offsets) != 2 || offsets[0] > offsets[1] || int64(offsets[1]) > math.MaxInt64-p.base {
		return fmt.Errorf("tensor %q: data_offsets %v: want [begin, end] with begin ≤ end", t.Name, offsets)
	}
	size, ok := dataSize(t.Type, t.Shape)
	if !ok {
		return fmt.Errorf("tensor %q: shape %v of %s has no size in whole bytes below 2^63", t.Name, t.Shape, t.Type)
	}
	if got := int64(offsets[1]) - int64(offsets[0]); got != size {
		return fmt.Errorf("tensor %q: shape %v of %s takes %d bytes, but data_offsets span %d", t.Name, t.Shape, t.Type, size, got)
	}
	t.begin, t.end = p.base+int64(offsets[0]), p.base+int64(offsets[1])
	p.tensors = append(p.tensors, t)
	return nil
}

// integers reads a flat array of at most max non-negative integers.
func (p *headerParser) integers(max int) ([]int, error) {
	if err := p.delim('['); err != nil {
		return nil, err
	}
	list := []int{}
	for p.dec.More() {
		tok, err := p.token()
		if err != nil {
			return nil, err
		}
		num, ok := tok.(json.Number)
		if !ok {
			return nil, fmt.Errorf("want an integer, found %v", tok)
		}
		n, err := strconv.ParseInt(string(num), 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("want an integer from 0 to 2^63-1, found %s", num)
		}
		if len(list) == max {
			return nil, fmt.Errorf("more than %d numbers", max)
		}
		list = append(list, int(n))
	}
	return list, p.delim(']')
}

func (p *headerParser) key(seen map[string]bool) (string, error) {
	tok, err := p.token()
	if err != nil {
		return "", err
	}
	key, ok := tok.(string)
	if !ok {
		return "", fmt.Errorf("want a key, found %v", tok)
	}
	if seen[key] {
		return "", fmt.Errorf("key %q stands twice", key)
	}
	seen[key] = true
	return key, nil
}

func (p *headerParser) delim(want json.Delim) error {
	tok, err := p.token()
	if err != nil {
		return err
	}
	if tok != want {
		return fmt.Errorf("want %q, found %v", want.String(), tok)
	}
	return nil
}

// token is the decoder's next token; an early end is an error of the file.
func (p *headerParser) token() (json.Token, error) {
	tok, err := p.dec.Token()
	if err == io.EOF {
		return nil, fmt.Errorf("header ends early")
	}
	return tok, err
}
