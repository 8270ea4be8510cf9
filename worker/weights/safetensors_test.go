package weights

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"
)

// image is a safetensors file of the given header and data.
func image(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range data {
		b = append(b, byte(i))
	}
	return b
}

// one is the header of a file with one tensor of 4 bytes.
const one = `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`

func TestHostileHeaders(t *testing.T) {
	f := func(file []byte, want string) {
		t.Helper()
		_, err := OpenFS(fstest.MapFS{"model.safetensors": {Data: file}})
		if err == nil {
			t.Fatalf("want an error with %q, got none", want)
		}
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "model.safetensors") {
			t.Fatalf("want an error of model.safetensors with %q, got: %v", want, err)
		}
	}
	length := func(n uint64) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, n), one...)
	}
	tensor := func(dtype, shape, offsets string) []byte {
		return image(fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets), 8)
	}

	// 81, 82: the header's length and its first byte.
	f(nil, "0 bytes are no safetensors file")
	f([]byte{1, 2, 3}, "3 bytes are no safetensors file")
	f(length(1<<63), "header too large")
	f(length(100_000_001), "header too large")
	f(length(uint64(len(one)+1)), "cut short")
	f([]byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"), "git lfs pull")
	f(length(0), "header too small")
	f(length(1), "header too small")
	f(image(`[]`, 0), "not with '{'")
	f(image(` {}`, 0), "not with '{'")

	// 83: the JSON itself.
	f(image("{\"a\xff\":1}", 0), "not UTF-8")
	f(image(`{"a":`, 0), "header ends early")
	f(image(`{"a" 1}`, 0), "invalid character")
	f(image(`{} {}`, 0), "something follows")
	f(image(one[:len(one)-1]+`,"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), `key "a" stands twice`)
	f(image(`{"a":{"dtype":"F32","dtype":"F16","shape":[1],"data_offsets":[0,4]}}`, 4), "stands twice")
	f(image(`{"__metadata__":{"a":1}}`, 0), "want a string")
	f(image(`{"__metadata__":{"a":{}}}`, 0), "want a string")
	f(image(`{"__metadata__":[]}`, 0), `want "{"`)
	f(image(`{"a":`+strings.Repeat("[", 100_000)+`}`, 0), `want "{"`)
	f(image(`{"a":{"dtype":"F32","shape":[1]}}`, 4), "must all be there")
	f(image(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":0}}`, 4), "unknown field")

	// 84: what the offsets cover.
	f(tensor("F32", "[2]", "[8,0]"), "begin ≤ end")
	f(tensor("F32", "[3]", "[0,12]"), "cut short")
	f(tensor("F32", "[1]", "[4,8]"), "hole")
	f(tensor("F32", "[1]", "[0,4]"), "belong to none")
	f(tensor("F32", "[2]", "[0,8,16]"), "more than 2 numbers")
	f(tensor("F32", "[2]", "[0]"), "begin ≤ end")
	f(tensor("F32", "[2]", "[9223372036854775800,9223372036854775807]"), "begin ≤ end")
	f(image(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "inside the tensor before it")
	f(image(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4), "inside the tensor before it")

	// 85: shapes.
	f(tensor("F32", "[3]", "[0,8]"), "takes 12 bytes")
	f(tensor("F32", "[4294967296,4294967296]", "[0,8]"), "no size")
	f(tensor("F64", "[2305843009213693952]", "[0,8]"), "no size")
	f(tensor("F32", "["+strings.Repeat("1,", 999)+"1]", "[0,8]"), "more than 32 numbers")
	f(tensor("F32", "[-2]", "[0,8]"), "want an integer from 0")
	f(tensor("F32", "[1e1]", "[0,8]"), "want an integer from 0")
	f(tensor("F32", `["2"]`, "[0,8]"), "want an integer")
	f(tensor("F32", "[18446744073709551616]", "[0,8]"), "want an integer from 0")
	f(tensor("F4", "[15]", "[0,8]"), "no size in whole bytes")

	// 86: types.
	f(tensor("F31", "[2]", "[0,8]"), "unknown type F31")
	f(image(`{"a":{"dtype":7,"shape":[2],"data_offsets":[0,8]}}`, 8), "unknown type 7")
}

func TestTypesAndShapes(t *testing.T) {
	f := func(dtype, shape string, size int) {
		t.Helper()
		header := fmt.Sprintf(`{"__metadata__":{"format":"pt"},"x":{"dtype":%q,"shape":%s,"data_offsets":[0,%d]}}   `, dtype, shape, size)
		s, err := OpenFS(fstest.MapFS{"model.safetensors": {Data: image(header, size)}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		x := s.Lookup("x")
		data, err := x.Data()
		if err != nil || len(data) != size || x.Bytes() != int64(size) {
			t.Fatalf("%s %s: %d bytes, %v; want %d", dtype, shape, len(data), err, size)
		}
		for i, b := range data {
			if b != byte(i) {
				t.Fatalf("%s %s: byte %d is %d", dtype, shape, i, b)
			}
		}
	}

	f("F32", "[2,3]", 24)
	f("F32", "[]", 4) // a scalar
	f("F32", "[0,9223372036854775807,9223372036854775807]", 0)
	f("F4", "[4,2]", 4)
	f("F6_E2M3", "[4]", 3)
	f("F8_E4M3", "[5]", 5)
	f("BF16", "[1,1,1,3]", 6)
	f("I64", "[2]", 16)
	f("C64", "[2]", 16)
	f("BOOL", "[3]", 3)
}

func TestShards(t *testing.T) {
	shard := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: image(strings.Replace(one, `"a"`, `"`+name+`"`, 1), 4)}
	}
	index := func(pairs string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(`{"metadata":{},"weight_map":{` + pairs + `}}`)}
	}
	f := func(fsys fstest.MapFS, want string) {
		t.Helper()
		s, err := OpenFS(fsys)
		if err != nil {
			if want == "" || !strings.Contains(err.Error(), want) {
				t.Fatalf("got %v; want %q", err, want)
			}
			return
		}
		defer s.Close()
		if want != "" {
			t.Fatalf("want an error with %q", want)
		}
		if names := strings.Join(s.Names(), " "); names != "a b" {
			t.Fatalf("tensors %q; want a b", names)
		}
	}
	const idx = "model.safetensors.index.json"

	f(fstest.MapFS{idx: index(`"a":"1.safetensors","b":"2.safetensors"`), "1.safetensors": shard("a"), "2.safetensors": shard("b"),
		"consolidated.safetensors": shard("a")}, "") // what the index does not name is not read
	f(fstest.MapFS{"1.safetensors": shard("a"), "2.safetensors": shard("b")}, "")

	// 87: an index that is wrong.
	f(fstest.MapFS{idx: index(`"a":"1.safetensors","b":"2.safetensors"`), "1.safetensors": shard("a")}, "cannot read 2.safetensors")
	f(fstest.MapFS{idx: index(`"a":"1.safetensors","c":"1.safetensors"`), "1.safetensors": shard("a")}, `tensor "c" should be in 1.safetensors`)
	f(fstest.MapFS{idx: index(`"a":"2.safetensors","b":"1.safetensors"`), "1.safetensors": shard("a"), "2.safetensors": shard("b")}, `but is in 1.safetensors`)
	f(fstest.MapFS{"1.safetensors": shard("a"), "2.safetensors": shard("a")}, `tensor "a" stands in 1.safetensors and in 2.safetensors`)
	f(fstest.MapFS{idx: index(`"a":"../../etc/passwd"`)}, "is not the name of a")
	f(fstest.MapFS{idx: index(`"a":"/etc/passwd.safetensors"`)}, "is not the name of a")
	f(fstest.MapFS{idx: index(`"a":".."`)}, "is not the name of a")
	f(fstest.MapFS{idx: index(`"a":"pytorch_model.bin"`)}, "is not the name of a")
	f(fstest.MapFS{idx: index(``)}, "missing or empty")
	f(fstest.MapFS{idx: {Data: []byte(`{"weight_map":[]}`)}}, idx)

	// 92: pickles.
	f(fstest.MapFS{"pytorch_model.bin": {Data: []byte{0x80, 2}}}, "pytorch_model.bin is a pickle")
	f(fstest.MapFS{"config.json": {}}, "no *.safetensors file")
}

// TestNotRegular is case 89: opening a FIFO would wait for ever.
func TestNotRegular(t *testing.T) {
	f := func(make func(path string) error) {
		t.Helper()
		dir := t.TempDir()
		if err := make(filepath.Join(dir, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Fatalf("got %v; want: not a regular file", err)
		}
	}
	f(func(path string) error { return unix.Mkfifo(path, 0o600) })
	f(func(path string) error { return os.Mkdir(path, 0o700) })
	f(func(path string) error { return os.Symlink("/dev/zero", path) })
}

// TestSymlink: the cache of Hugging Face is links into a folder of blobs.
func TestSymlink(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "blob"), image(one, 4), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("blob", filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCutWhileMapped is case 88: without the guard the process would end with
// SIGBUS.
func TestCutWhileMapped(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	const size = 1 << 20
	header := fmt.Sprintf(`{"a":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}`, size, size)
	if err := os.WriteFile(path, image(header, size), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := s.Lookup("a")
	if data, err := a.Data(); err != nil || len(data) != size || data[77] != 77 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	if err := s.Unchanged(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Data(); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Fatalf("got %v; want: cut short", err)
	}
	if err := s.Unchanged(); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Fatalf("got %v; want: changed", err)
	}
}

// TestReplacedWhileMapped: the old file stays readable, and is found out.
func TestReplacedWhileMapped(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	if err := os.WriteFile(path, image(one, 4), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.WriteFile(path+".new", image(one, 4), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path+".new", time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if data, err := s.Lookup("a").Data(); err != nil || len(data) != 4 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	if err := s.Unchanged(); err == nil {
		t.Fatal("a replaced file passed for unchanged")
	}
}

// FuzzSafetensors: whatever the bytes, either an error or tensors that cover
// the data exactly.
func FuzzSafetensors(f *testing.F) {
	f.Add(image(one, 4))
	f.Add(image(`{"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,0],"data_offsets":[0,0]}}`, 0))
	f.Add(image(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}`, 8))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := OpenFS(fstest.MapFS{"model.safetensors": {Data: data}})
		if err != nil {
			return
		}
		defer s.Close()
		total := int64(8) + int64(binary.LittleEndian.Uint64(data))
		for _, name := range s.Names() {
			x := s.Lookup(name)
			got, err := x.Data()
			if err != nil || int64(len(got)) != x.Bytes() {
				t.Fatalf("%q: %d bytes, %v; want %d", name, len(got), err, x.Bytes())
			}
			if bits := x.Elements() * int64(x.Type.Bits()); bits != 8*x.Bytes() {
				t.Fatalf("%q: %d bits in %d bytes", name, bits, x.Bytes())
			}
			total += x.Bytes()
		}
		if total != int64(len(data)) {
			t.Fatalf("tensors cover %d of %d bytes", total, len(data))
		}
	})
}
