package gguf

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"strings"
	"testing"
)

// header writes a file by hand, so that it can be wrong.
type header struct{ b []byte }

func (h *header) u32(v uint32) *header { h.b = binary.LittleEndian.AppendUint32(h.b, v); return h }
func (h *header) u64(v uint64) *header { h.b = binary.LittleEndian.AppendUint64(h.b, v); return h }
func (h *header) text(s string) *header {
	h.u64(uint64(len(s)))
	h.b = append(h.b, s...)
	return h
}
func (h *header) bytes(b ...byte) *header { h.b = append(h.b, b...); return h }

// fixed is the fixed part of a file.
func fixed(version uint32, tensors, values uint64) *header {
	return (&header{b: []byte("GGUF")}).u32(version).u64(tensors).u64(values)
}

// tensor adds an entry of the tensors' list.
func (h *header) tensor(name string, kind Type, offset uint64, dims ...uint64) *header {
	h.text(name).u32(uint32(len(dims)))
	for _, d := range dims {
		h.u64(d)
	}
	return h.u32(uint32(kind)).u64(offset)
}

// data pads the header and adds n bytes.
func (h *header) data(n int) *header {
	h.b = append(h.b, make([]byte, int(pad(int64(len(h.b)), 32))-len(h.b)+n)...)
	return h
}

// TestHostile is case 90 of the attack list: what a GGUF file can get wrong,
// and the published holes of other readers.
func TestHostile(t *testing.T) {
	f := func(name string, h *header, want string) {
		t.Helper()
		_, err := Parse(h.b)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "byte ") {
			t.Errorf("%s: got %v; want an error with %q", name, err, want)
		}
	}
	raw := func(s string) *header { return &header{b: []byte(s + strings.Repeat(" ", 32))} }
	value := func(key string, kind uint32) *header { return fixed(3, 0, 1).text(key).u32(kind) }

	f("empty", &header{}, "0 bytes are no GGUF file")
	f("short", &header{b: []byte("GGUF")}, "4 bytes are no GGUF file")
	f("bad magic", raw("GGML"), `begins with "GGML"`)
	f("Git LFS", raw("version https://git-lfs.github.com/spec/v1"), "git lfs pull")
	f("version 0", fixed(0, 0, 0).data(0), "big-endian")
	f("version 1", fixed(1, 0, 0), "version 1 is not supported")
	f("version 4", fixed(4, 0, 0), "version 4 is not supported")
	f("big-endian", fixed(3<<24, 0, 0), "big-endian")

	f("n_kv 2^63 (CVE-2024-23605)", fixed(3, 0, 1<<63).data(64), "9223372036854775808 values in a file of")
	f("n_tensors 2^63", fixed(3, 1<<63, 0).data(64), "9223372036854775808 tensors in a file of")
	f("n_tensors 2^64-1", fixed(3, math.MaxUint64, 0).data(64), "tensors in a file of")
	f("more values than bytes", fixed(3, 0, 100).data(64), "100 values in a file of")

	f("key length 2^63", fixed(3, 0, 1).u64(1<<63).data(64), "a string of 9223372036854775808 bytes")
	f("key length 2^64-1", fixed(3, 0, 1).u64(math.MaxUint64).data(64), "a string of 18446744073709551615 bytes")
	f("key of 64 KiB", fixed(3, 0, 1).text(strings.Repeat("k", 1<<16)).data(64), "at most 65535 are allowed")
	f("key empty", value("", typeUint8).bytes(1).data(0), "is no name")
	f("key no UTF-8", value("\xff", typeUint8).bytes(1).data(0), "is no name")
	f("key twice", fixed(3, 0, 2).text("a").u32(typeUint8).bytes(1).text("a").u32(typeUint8).bytes(2).data(8), `key "a" stands twice`)
	f("type 255", value("a", 255).data(64), "a: value type 255 is unknown")
	f("truth value 2", value("a", typeBool).bytes(2).data(64), "a truth value is 2")
	f("string length 2^63", value("a", typeString).u64(1<<63).data(64), "a: a string of 9223372036854775808 bytes")
	f("value cut short", value("a", typeUint64).bytes(1), "cut short")
	f("list of 2^63", value("a", typeArray).u32(typeUint64).u64(1<<63).data(64), "a list of 9223372036854775808 entries")
	f("list whose bytes wrap", value("a", typeArray).u32(typeUint64).u64(1<<61).data(64), "entries")
	f("list of 2^20 strings in 64 bytes", value("a", typeArray).u32(typeString).u64(1<<20).data(64), "a list of 1048576 entries")
	f("list of lists", value("a", typeArray).u32(typeArray).u64(1).u32(typeUint8).u64(0).data(64), "a list of lists")
	f("list of type 255", value("a", typeArray).u32(255).u64(1).data(64), "value type 255 is unknown")
	f("list cut short in a string", value("a", typeArray).u32(typeString).u64(1).u64(1000).data(64), "entry 0: a string of 1000 bytes")

	align := func(n uint32) *header { return value("general.alignment", typeUint32).u32(n).data(0) }
	f("alignment 0", align(0), "general.alignment is 0")
	f("alignment 48", align(48), "general.alignment is 48")
	f("alignment 2^31", align(1<<31), "general.alignment is 2147483648")
	f("alignment a string", value("general.alignment", typeString).text("32").data(0), "want a power of two as uint32")

	one := func() *header { return fixed(3, 1, 0) }
	f("tensor name of 65", one().tensor(strings.Repeat("n", 65), F32, 0, 1).data(64), "a string of 65 bytes; at most 64")
	f("tensor name empty", one().tensor("", F32, 0, 1).data(4), "is no name")
	f("tensor twice", fixed(3, 2, 0).tensor("a", F32, 0, 8).tensor("a", F32, 32, 8).data(64), `tensor "a" stands twice`)
	f("no dimensions", one().tensor("a", F32, 0).data(32), "0 dimensions")
	f("5 dimensions", one().tensor("a", F32, 0, 1, 1, 1, 1, 1).data(32), "5 dimensions")
	f("10^9 dimensions", one().text("a").u32(1e9).data(64), "1000000000 dimensions")
	f("ne = 0", one().tensor("a", F32, 0, 4, 0).data(32), "none may be 0")
	f("ne = 0 in blocks (CVE-2025-0317)", one().tensor("a", Q4_0, 0, 0).data(32), "none may be 0")
	f("elements wrap (CVE-2025-53630)", one().tensor("a", F32, 0, 1<<32, 1<<32).data(32), "more than 2^64 elements")
	f("bytes wrap (CVE-2026-27940)", one().tensor("a", F32, 0, 1<<62).data(32), "take more than 2^63 bytes")
	f("bytes of blocks wrap", one().tensor("a", Q8_0, 0, 1<<63).data(32), "take more than 2^63 bytes")
	f("row no whole block", one().tensor("a", Q4_0, 0, 33).data(64), "rows of 33 elements; Q4_0 has blocks of 32")
	f("row no whole super-block", one().tensor("a", Q4_K, 0, 128).data(96), "Q4_K has blocks of 256")
	f("type not read", one().tensor("a", 16, 0, 256).data(96), "IQ2_XXS is not supported; supported are F32")
	f("type unknown", one().tensor("a", 255, 0, 256).data(192), "type 255 is not supported")
	f("type removed", one().tensor("a", 4, 0, 256).data(192), "type 4 is not supported")

	f("offset 1", one().tensor("a", F32, 1, 8).data(64), "offset 1; want a multiple of 32")
	f("offset 2^63", one().tensor("a", F32, 1<<63, 8).data(64), "offset 9223372036854775808; want")
	f("offset 2^63-32 (GGML_PAD wraps, CVE-2026-33298)", one().tensor("a", F32, 1<<63-32, 8).data(64), "offset 9223372036854775776; want")
	f("offset 2^63-64, beyond with the header", one().tensor("a", F32, 1<<63-64, 8).data(64), "beyond every file")
	f("hole", one().tensor("a", F32, 32, 8).data(64), "leaves a hole from 0")
	f("overlap", fixed(3, 2, 0).tensor("a", F32, 0, 16).tensor("b", F32, 32, 8).data(64), "lies inside the tensor before it")
	f("same place", fixed(3, 2, 0).tensor("a", F32, 0, 8).tensor("b", F32, 0, 8).data(32), "lies inside the tensor before it")
	f("past the end", one().tensor("a", F32, 0, 9).data(32), "the file is cut short")
	f("behind the last", one().tensor("a", F32, 0, 8).data(33), "1 bytes behind the last tensor")
	f("polyglot without tensors", fixed(3, 0, 0).data(64), "bytes behind the last tensor")
	f("no data at all", one().tensor("a", F32, 0, 8), "cut short")
}

// TestRead: what Encode writes is what Parse reads, and a file without the last
// padding is whole too.
func TestRead(t *testing.T) {
	values := map[string]Value{
		"general.architecture": "llama", "general.alignment": uint32(64), "a.count": uint32(7), "a.base": float32(1e6),
		"a.flag": true, "a.words": []string{"x", "", "é"}, "a.kinds": []int32{1, -1}, "a.scores": []float32{-0.5}, "a.long": uint64(1) << 40,
	}
	file := Encode(values, []Content{
		{Name: "m", Type: Q8_0, Shape: []int{2, 32}, Data: make([]byte, 68)},
		{Name: "v", Type: F32, Shape: []int{3}, Data: make([]byte, 12)},
	})
	for cut := range 52 {
		f, err := Parse(file[:len(file)-cut])
		if err != nil {
			t.Fatalf("%d bytes of padding cut off: %v", cut, err)
		}
		if !reflect.DeepEqual(f.Values, values) {
			t.Fatalf("read %v; want %v", f.Values, values)
		}
		m, v := f.Tensors[0], f.Tensors[1]
		if f.Align != 64 || m.End-m.Begin != 68 || v.Begin%64 != 0 || v.End-v.Begin != 12 || !reflect.DeepEqual(m.Shape, []int{2, 32}) {
			t.Fatalf("tensors %+v", f.Tensors)
		}
	}
	if _, err := Parse(file[:len(file)-53]); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Fatalf("got %v; want: cut short", err)
	}
	// Every file that ends inside its header is refused.
	for n := range bytes.Index(file, []byte("\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")) {
		if _, err := Parse(file[:n]); err == nil {
			t.Fatalf("%d bytes were taken for a file", n)
		}
	}
}

// TestTypes: a value of another type than asked for is an error that names
// both; an absent one is not.
func TestTypes(t *testing.T) {
	f := &File{Values: map[string]Value{"s": "x", "i": int8(-1), "u": uint64(math.MaxUint64), "f": float32(math.Inf(1)), "l": []uint32{1 << 31}, "n": uint16(9)}}
	fails := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	_, err := f.Int("s", 0)
	fails(err, "s is of type string; want an integer")
	_, err = f.Int("u", 0)
	fails(err, "u is 18446744073709551615")
	_, err = f.Float("f", 0)
	fails(err, "f is +Inf; want a finite number")
	_, err = f.Float("s", 0)
	fails(err, "want a number")
	_, err = f.String("i")
	fails(err, "i is of type int8; want a string")
	_, err = f.Bool("i", true)
	fails(err, "want a truth value")
	_, err = f.Integers("l")
	fails(err, "l[0] is 2147483648")
	_, err = f.Strings("i")
	fails(err, "want a list of strings")
	if v, err := f.Float("n", 0); v != 9 || err != nil {
		t.Errorf("%v, %v; want 9", v, err)
	}
	if v, err := f.Int("absent", 5); v != 5 || err != nil {
		t.Errorf("%v, %v; want 5", v, err)
	}
	if v, err := f.Floats("absent"); v != nil || err != nil {
		t.Errorf("%v, %v; want none", v, err)
	}
}
