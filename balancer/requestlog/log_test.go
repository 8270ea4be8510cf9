package requestlog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/configs"
)

func config(path string) *configs.LogRequests {
	return &configs.LogRequests{Path: path, Keys: []string{"*"}, Body: 100, Size: 1000, Files: 3}
}

// TestRotation: two doors write to one row of files, of which none grows beyond its size
// and no more are kept than asked for.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	a, b := &file{path: path, size: 1000, files: 3}, &file{path: path, size: 1000, files: 3}
	for n := range 200 {
		for _, f := range []*file{a, b} {
			if _, err := f.Write(fmt.Appendf(nil, "line %04d of a log\n", n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.close()
	b.close()
	all, _ := filepath.Glob(path + "*")
	if want := []string{path, path + ".1", path + ".2", path + ".lock"}; fmt.Sprint(all) != fmt.Sprint(want) {
		t.Fatalf("there are %v; want %v", all, want)
	}
	text := ""
	for _, name := range []string{path + ".2", path + ".1", path} {
		one, err := os.ReadFile(name)
		info, _ := os.Stat(name)
		if err != nil || len(one) > 1000 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has %d bytes, mode %v: %v", name, len(one), info.Mode(), err)
		}
		text += string(one)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines { // each number twice, up to the last
		if want := fmt.Sprintf("line %04d of a log", 200-(len(lines)-i+1)/2); line != want {
			t.Fatalf("line %d of %d is %q; want %q", i, len(lines), line, want)
		}
	}
}

// TestLog: a reload changes the file and loses nothing; a folder that is not there is
// told, and its lines are counted.
func TestLog(t *testing.T) {
	dir := t.TempDir()
	var l Log
	if _, wanted := l.Wants("a"); wanted {
		t.Error("a log that nobody asked for writes")
	}
	first := config(filepath.Join(dir, "one"))
	first.Keys, first.Bodies = []string{"a"}, true
	l.Configure(first)
	if body, wanted := l.Wants("a"); !wanted || body != 100 {
		t.Error(body, wanted)
	}
	if _, wanted := l.Wants("b"); wanted {
		t.Error("another key's requests are written")
	}
	l.Write(&Line{ID: "x"})
	l.Configure(config(filepath.Join(dir, "none", "two")))
	l.Write(&Line{ID: "y"})
	l.Close()
	text, err := os.ReadFile(first.Path)
	var line Line
	if err != nil || json.Unmarshal(text, &line) != nil || line.ID != "x" {
		t.Errorf("%s %v", text, err)
	}
	if l.Dropped() != 1 {
		t.Errorf("%d lines were dropped", l.Dropped())
	}
}
