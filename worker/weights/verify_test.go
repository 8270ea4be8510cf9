package weights

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVerify is case 94: a file that is not what its checksum says.
func TestVerify(t *testing.T) {
	data := image(one, 4)
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	put := func(path string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := func(path, want string) {
		t.Helper()
		err := Verify(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "model.safetensors")
	put(file, data)
	f(dir, "model.safetensors: there is no checksum")
	put(filepath.Join(dir, sumsName), []byte(sum+"  model.safetensors\n"+sum+" *other.safetensors\n"))
	f(dir, "")
	put(file, append([]byte(nil), data[:len(data)-1]...))
	f(dir, "model.safetensors: its SHA-256 is ")
	put(filepath.Join(dir, sumsName), []byte("x  model.safetensors\n"))
	f(dir, "SHA256SUMS, line 1")
	f(filepath.Join(dir, "nowhere"), "no such file")

	// The cache of Hugging Face names its files by their checksum.
	cache := t.TempDir()
	put(filepath.Join(cache, sum), data)
	link := filepath.Join(cache, "model.safetensors")
	if err := os.Symlink(sum, link); err != nil {
		t.Fatal(err)
	}
	f(cache, "")
	put(filepath.Join(cache, sum), append([]byte(nil), append(data, 0)...))
	f(cache, "its SHA-256 is ")
	if err := os.Symlink(sum, filepath.Join(cache, "x.gguf")); err != nil {
		t.Fatal(err)
	}
	f(filepath.Join(cache, "x.gguf"), "x.gguf: its SHA-256 is ")

	// Each part of a model in several files is held to its checksum.
	split := t.TempDir()
	parts := [][]byte{part(0, 2, 1), part(1, 2, 1, "a")}
	text := ""
	for i, data := range parts {
		name := fmt.Sprintf("m-%05d-of-00002.gguf", i+1)
		put(filepath.Join(split, name), data)
		text += fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name)
	}
	put(filepath.Join(split, sumsName), []byte(text))
	f(filepath.Join(split, "m-00001-of-00002.gguf"), "")
	put(filepath.Join(split, "m-00002-of-00002.gguf"), append(parts[1], 0))
	f(filepath.Join(split, "m-00001-of-00002.gguf"), "m-00002-of-00002.gguf: its SHA-256 is ")
}
