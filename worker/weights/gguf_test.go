package weights

import (
	"bytes"
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
	if _, _, err := openGGUF(f); err == nil || !strings.Contains(err.Error(), "x.gguf: the file was cut short") {
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
