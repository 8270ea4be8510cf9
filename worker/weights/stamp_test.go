package weights

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The stamp is the same for the same files, and another for any that differ.
func TestStamp(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	stamp := func() string {
		t.Helper()
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		stamp, ok := s.Stamp()
		if !ok {
			t.Fatal("a set on the disk has no stamp")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return stamp
	}
	write := func(header string, data int) {
		t.Helper()
		b := append([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}, header...)
		if err := os.WriteFile(path, append(b, make([]byte, data)...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	touch := func(at time.Time) {
		t.Helper()
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8)
	touch(at)
	first := stamp()
	if again := stamp(); again != first {
		t.Fatalf("the same file has the stamps %s and %s", first, again)
	}
	touch(at.Add(time.Nanosecond))
	if stamp() == first {
		t.Fatal("a file that was written later has the same stamp")
	}
	write(`{"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8)
	touch(at)
	if stamp() == first {
		t.Fatal("another header has the same stamp")
	}
}
