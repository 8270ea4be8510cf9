package statefile

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWrite: a file is replaced whole and is its owner's; one that cannot be replaced stays,
// and nothing is left beside it.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	for _, text := range []string{"a long first text", "second"} {
		if err := Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	folder := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(folder, "in it"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(folder, []byte("x")); err == nil {
		t.Error("a folder was replaced")
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
		t.Errorf("beside the file and the folder lies more: %v, %v", list, err)
	}
	if err := Write(filepath.Join(dir, "none", "state.json"), nil); err == nil {
		t.Error("written into a folder that is not there")
	}
}

// TestAbandoned: only a file that a Write left behind long ago may be removed.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{unfinished + "1": 0, unfinished + "2": 2 * time.Hour, "state.json": 2 * time.Hour} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if got, want := Abandoned(e), e.Name() == unfinished+"2"; got != want {
			t.Errorf("%s: abandoned: %v", e.Name(), got)
		}
	}
}
