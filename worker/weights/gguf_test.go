package weights

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"roundhouse/worker/gguf"
)

// TestGGUF: a file's tensors are found by name, mapped or in memory.
func TestGGUF(t *testing.T) {
	want := bytes.Repeat([]byte{1, 2}, 17)
	file := gguf.Encode(map[string]gguf.Value{"general.architecture": "llama"}, []gguf.Content{
		{Name: "b", Type: gguf.Q8_0, Shape: []int{1, 32}, Data: want},
		{Name: "a", Type: gguf.F32, Shape: []int{1}, Data: make([]byte, 4)},
	})
	path := filepath.Join(t.TempDir(), "x.gguf")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(s *Set, f *gguf.File, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if b := s.Lookup("b"); strings.Join(s.Names(), " ") != "a b" || b.Type != Q8_0 || f.Values["general.architecture"] != "llama" {
			t.Fatalf("tensors %v, b is %+v, values %v", s.Names(), b, f.Values)
		}
		if data, err := s.Lookup("b").Data(); err != nil || !bytes.Equal(data, want) {
			t.Fatalf("b is %v, %v", data, err)
		}
	}
	check(OpenGGUF(path))
	check(OpenGGUFFS(fstest.MapFS{"x.gguf": {Data: file}}, "x.gguf"))

	// 88: the file is cut short after it was opened.
	s, _, err := OpenGGUF(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lookup("b").Data(); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Fatalf("got %v; want: cut short", err)
	}
	if err := s.Unchanged(); err == nil {
		t.Fatal("a file that was cut short passed for unchanged")
	}
}

// TestGGUFCutWhileParsed: the header of a mapped file that shrinks.
func TestGGUFCutWhileParsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gguf")
	words := make([]string, 4096)
	for i := range words {
		words[i] = strings.Repeat("w", 20)
	}
	if err := os.WriteFile(path, gguf.Encode(map[string]gguf.Value{"words": words}, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := mapFile(path, "x.gguf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openGGUF("x.gguf", func(string) (*file, error) { return f, nil }); err == nil || !strings.Contains(err.Error(), "x.gguf: the file was cut short") {
		t.Fatalf("got %v; want: cut short", err)
	}
}

// TestGGUFNotRegular is case 89.
func TestGGUFNotRegular(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gguf")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenGGUF(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Fatalf("got %v; want: not a regular file", err)
	}
}

// part is the i-th file, counted from 0, of a model of count files.
func part(i, count, tensors int, names ...string) []byte {
	values := map[string]gguf.Value{"split.no": uint16(i), "split.count": uint16(count), "split.tensors.count": int32(tensors)}
	if i == 0 {
		values["general.architecture"] = "llama"
	}
	var contents []gguf.Content
	for _, name := range names {
		contents = append(contents, gguf.Content{Name: name, Type: gguf.F32, Shape: []int{1}, Data: []byte{byte(i), 0, 0, 0}})
	}
	return gguf.Encode(values, contents)
}

// TestGGUFSplit: a model in several files is opened by its first.
func TestGGUFSplit(t *testing.T) {
	files := fstest.MapFS{
		"m-00001-of-00003.gguf": {Data: part(0, 3, 3)}, // values alone, as converters may write it
		"m-00002-of-00003.gguf": {Data: part(1, 3, 3, "a", "b")},
		"m-00003-of-00003.gguf": {Data: part(2, 3, 3, "c")},
	}
	s, head, err := OpenGGUFFS(files, "m-00001-of-00003.gguf")
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.Lookup("c").Data()
	if err != nil || strings.Join(s.Names(), " ") != "a b c" || data[0] != 2 || len(head.Tensors) != 3 || head.Values["general.architecture"] != "llama" {
		t.Errorf("tensors %v, c is %v, %v; the header has %d tensors", s.Names(), data, err, len(head.Tensors))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	f := func(title, name, want string, change map[string]*fstest.MapFile) {
		t.Helper()
		changed := maps.Clone(files)
		for k, v := range change {
			if changed[k] = v; v == nil {
				delete(changed, k)
			}
		}
		if _, _, err := OpenGGUFFS(changed, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want an error with %q", title, err, want)
		}
	}
	const first, second = "m-00001-of-00003.gguf", "m-00002-of-00003.gguf"
	f("the second", second, "give the first, under its name NAME-00001-of-00003.gguf", nil)
	f("another name", "m.gguf", "give the first", map[string]*fstest.MapFile{"m.gguf": files[first]})
	f("a short name", "-00001-of-00003.gguf", "give the first", map[string]*fstest.MapFile{"-00001-of-00003.gguf": files[first]})
	f("one is missing", first, "part 2 of 3: cannot", map[string]*fstest.MapFile{second: nil})
	f("one of another model", first, "split.no is 1 and split.count 2; want 1 and 3", map[string]*fstest.MapFile{second: {Data: part(1, 2, 3, "a")}})
	f("no part", first, "split.no is -1", map[string]*fstest.MapFile{second: {Data: gguf.Encode(nil, nil)}})
	f("a tensor twice", first, `tensor "c" stands in m-00002-of-00003.gguf and in m-00003-of-00003.gguf`, map[string]*fstest.MapFile{second: {Data: part(1, 3, 3, "c")}})
	f("a tensor is missing", first, "have 2 tensors; split.tensors.count is 3", map[string]*fstest.MapFile{second: {Data: part(1, 3, 3, "a")}})
	f("a damaged part", first, "part 2 of 3: m-00002-of-00003.gguf", map[string]*fstest.MapFile{second: {Data: []byte("GGUF")}})
}
