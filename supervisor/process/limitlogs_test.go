package process

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// Logs that are written to for weeks stay bounded: each with four former ones, in which
// nothing is lost, and the writer goes on at the new end.
func TestLogsStayBounded(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n, err := newManager(dir, nil, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		path := n.LogFile("door")
		log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		for day := range 7 {
			if err := log.Truncate(n.logLimit); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(log, "day %d\n", day)
			time.Sleep(limitTime + time.Second)
			synctest.Wait()
			if info, err := os.Stat(path); err != nil || info.Size() != 0 {
				t.Fatalf("day %d: %v, %v", day, info, err)
			}
		}
		fmt.Fprint(log, "goes on\n")
		if text, err := os.ReadFile(path); err != nil || string(text) != "goes on\n" {
			t.Errorf("the log has %q, %v", text, err)
		}
		for i := range keptLogs {
			name := fmt.Sprintf("%s.%d", path, i+1)
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			text := make([]byte, 6)
			_, err = f.ReadAt(text, n.logLimit)
			f.Close()
			if want := fmt.Sprintf("day %d\n", 6-i); err != nil || string(text) != want {
				t.Errorf("%s ends with %q, %v; want %q", name, text, err, want)
			}
		}
		if list, _ := filepath.Glob(path + "*"); len(list) != keptLogs+1 {
			t.Errorf("there are %v", list)
		}
	})
}

// A log that cannot be copied is emptied before it fills the disk.
func TestLogThatCannotBeCopied(t *testing.T) {
	n := &Manager{dir: t.TempDir(), logLimit: 100}
	path := n.LogFile("door")
	for i := range keptLogs { // folders stand in the way
		if err := os.MkdirAll(filepath.Join(fmt.Sprintf("%s.%d", path, i+1), "full"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f := func(size, want int64) {
		t.Helper()
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		n.limitLogs()
		if info, err := os.Stat(path); err != nil || info.Size() != want {
			t.Errorf("of %d bytes %v are left, %v; want %d", size, info, err, want)
		}
	}
	f(150, 150)
	f(200, 0)
}
