package weights

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sumsName is the file that `sha256sum *.safetensors > SHA256SUMS` writes.
const sumsName = "SHA256SUMS"

// Verify reads every weight file of a folder, or a GGUF file and its parts, and holds it to
// its SHA-256: as SHA256SUMS beside it says, or as the name of the file that it
// is a link to, in the cache of Hugging Face. A file without either is an
// error, since nothing can be said of it.
func Verify(path string) error {
	dir, names := path, []string(nil)
	if info, err := os.Stat(path); err != nil {
		return err
	} else if !info.IsDir() {
		dir = filepath.Dir(path)
		if names, err = filesOfGGUF(path); err != nil {
			return err
		}
	} else if names, _, err = weightFiles(os.DirFS(path)); err != nil {
		return err
	}
	sums, err := readSums(os.DirFS(dir))
	if err != nil {
		return err
	}
	for _, name := range names {
		want := sums[name]
		if want == "" {
			want = blobSum(filepath.Join(dir, name))
		}
		if want == "" {
			return fmt.Errorf("%s: there is no checksum to hold it to: it is not in %s and no link into the cache of Hugging Face", name, sumsName)
		}
		got, err := sumOf(filepath.Join(dir, name), name)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s: its SHA-256 is %s; want %s: the file is damaged or another one", name, got, want)
		}
	}
	return nil
}

// readSums reads SHA256SUMS, file → checksum; none if there is no such file.
func readSums(fsys fs.FS) (map[string]string, error) {
	data, err := ReadBounded(fsys, sumsName, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	for n := 1; lines.Scan(); n++ {
		sum, name, ok := strings.Cut(lines.Text(), " ")
		if !ok || !isSum(sum) {
			return nil, fmt.Errorf("%s, line %d: want a SHA-256, two spaces and a file", sumsName, n)
		}
		sums[strings.TrimLeft(name, " *")] = strings.ToLower(sum)
	}
	return sums, lines.Err()
}

// blobSum is the checksum that names the file which path is a link to; "" if
// there is none.
func blobSum(path string) string {
	target, err := os.Readlink(path)
	if name := filepath.Base(target); err == nil && isSum(name) {
		return name
	}
	return ""
}

func isSum(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size
}

// sumOf reads a regular file whole.
func sumOf(path, name string) (string, error) {
	f, err := mapFile(path, name) // which looks before it opens
	if err != nil {
		return "", err
	}
	defer f.close()
	h := sha256.New()
	err = guarded(func() error {
		for part := range slices.Chunk(f.data, 1<<20) {
			if _, err := h.Write(part); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("%s was cut short while it was being read: %w", name, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
