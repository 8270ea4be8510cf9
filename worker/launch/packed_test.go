package launch

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A worker's second start takes its weights from the cache and says the same;
// damage and other weights are found, and a start with them packs again.
func TestPackedWeights(t *testing.T) {
	model, dir := copyDemo(t), t.TempDir()
	ask := prompts(t)[:4]
	start := func(want bool) (got []string) {
		t.Helper()
		t.Run("start", func(t *testing.T) {
			o, err := ParseServe([]string{"--model", model, "--quantization", "sym_int4", "--weights-cache", dir}, noEnv)
			if err != nil {
				t.Fatal(err)
			}
			log := &lines{kept: make(chan struct{}, 1)}
			got = tokens(t, serveOpen(t, o, slog.New(slog.NewTextHandler(log, nil))).URL, ask, false, 1)
			if kept := strings.Contains(log.String(), "packed=true"); kept != want {
				t.Fatalf("the weights came from the cache: %v; want %v. The log:\n%s", kept, want, log)
			}
			if !want {
				<-log.kept // the file is there
			}
		})
		return got
	}
	first := start(false)
	same := func(want bool) {
		t.Helper()
		if got := start(want); !slices.Equal(got, first) {
			t.Fatalf("got %q; want %q", got, first)
		}
	}
	same(true)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || !strings.HasSuffix(files[0].Name(), "-sym_int4.packed") {
		t.Fatalf("the cache has %v, %v; want one file", files, err)
	}
	path := filepath.Join(dir, files[0].Name())
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 4
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	same(false)
	same(true)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(model, "model.safetensors"), later, later); err != nil {
		t.Fatal(err)
	}
	same(false)
}

// lines is a log that says when the packed weights are on the disk.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	kept chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.Contains(string(b), "are kept for the next start") {
		l.kept <- struct{}{}
	}
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
