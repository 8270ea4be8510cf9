package pagecache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRead(t *testing.T) {
	dir, store := t.TempDir(), t.TempDir()
	put := func(dir, name string, n int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(dir, "config.json", 100)
	put(store, "blob", 3<<20)
	if err := os.Symlink(filepath.Join(store, "blob"), filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil { // would wait for ever
		t.Fatal(err)
	}
	if n, err := Read(t.Context(), dir, 1<<30); err != nil || n != 3<<20+100 {
		t.Errorf("%d %v", n, err)
	}
	if n, err := Read(t.Context(), filepath.Join(dir, "model.safetensors"), 1<<30); err != nil || n != 3<<20 {
		t.Errorf("one file: %d %v", n, err)
	}
	if _, err := Read(t.Context(), dir, 1<<20); !errors.Is(err, ErrNoRoom) {
		t.Errorf("without room: %v", err)
	}
	if _, err := Read(t.Context(), filepath.Join(dir, "absent"), 1<<30); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ended, dir, 1<<30); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
}

func TestRoom(t *testing.T) {
	if n, err := Room("/proc"); err != nil || n <= 0 {
		t.Errorf("%d %v", n, err)
	}
}
