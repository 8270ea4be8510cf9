package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

func openAt(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func shut(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, j *Journal) string {
	t.Helper()
	out := ""
	if err := j.Read(Workers, func(key string, data []byte) error {
		out += key + "=" + string(data) + " "
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWriteRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openAt(t, path)
	if err := j.Write([]Change{{Workers, "a", 1}, {Workers, "b", 2}, {Workers, "c", 3}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Write([]Change{{Workers, "b", nil}, {Workers, "c", 4}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrBusy) {
		t.Errorf("a second one: %v", err)
	}
	shut(t, j)
	j = openAt(t, path)
	defer shut(t, j)
	if got := contents(t, j); got != "a=1 c=4 " {
		t.Errorf("got %q", got)
	}
}

// A record whose bits have flipped is found by its checksum, and the file set
// aside with all that people may still read from it.
func TestFlippedBit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openAt(t, path)
	if err := j.Write([]Change{{Workers, "a", strings.Repeat("reliable ", 20)}}); err != nil {
		t.Fatal(err)
	}
	shut(t, j)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(data), "reliable")
	data[at] ^= 4
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	j = openAt(t, path)
	defer shut(t, j)
	if j.SetAside == "" || contents(t, j) != "" {
		t.Errorf("set aside %q, holds %q", j.SetAside, contents(t, j))
	}
	if kept, err := os.ReadFile(j.SetAside); err != nil || len(kept) != len(data) {
		t.Errorf("what was set aside: %d bytes, %v", len(kept), err)
	}
}

// §6.31: cut at any length and with any bits flipped, a file is opened, or
// set aside and begun anew; the program never falls with it.
func TestAnyDamage(t *testing.T) {
	dir := t.TempDir()
	j := openAt(t, filepath.Join(dir, "whole"))
	for i := range 40 {
		if err := j.Write([]Change{{Workers, fmt.Sprint(i), strings.Repeat("x", 200)}}); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, j)
	whole, err := os.ReadFile(filepath.Join(dir, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		data := append([]byte(nil), whole...)
		if seed%2 == 0 {
			data = data[:r.IntN(len(data))]
		}
		for range r.IntN(8) {
			if len(data) > 0 {
				data[r.IntN(len(data))] ^= 1 << r.IntN(8)
			}
		}
		path := filepath.Join(dir, fmt.Sprint("damaged-", seed))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(path)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := j.Write([]Change{{Workers, "new", 1}}); err != nil {
			// A page that nothing points to yet may be damaged: an error, no fall.
			t.Logf("seed %d: %v", seed, err)
		}
		_ = j.Close() // of a damaged file it may fail; what matters is that it returns
	}
}

// A journal that cannot be opened now is left where it is: nothing says that it is damaged.
func TestUnreachableIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openAt(t, path)
	if err := j.Write([]Change{{Workers, "a", 1}}); err != nil {
		t.Fatal(err)
	}
	shut(t, j)
	var had unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &had); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: had.Max}); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	if e := unix.Setrlimit(unix.RLIMIT_NOFILE, &had); e != nil {
		t.Fatal(e)
	}
	if !errors.Is(err, unix.EMFILE) || strings.Contains(err.Error(), "damaged") {
		t.Errorf("without descriptors: %v", err)
	}
	j = openAt(t, path)
	defer shut(t, j)
	if got := contents(t, j); j.SetAside != "" || got != "a=1 " {
		t.Errorf("set aside %q, holds %q", j.SetAside, got)
	}
}

func TestNewerFormatIsRefusedAndLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openAt(t, path)
	if err := j.Write([]Change{{Meta, "format", Format + 1}, {Workers, "a", 1}}); err != nil {
		t.Fatal(err)
	}
	shut(t, j)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrNewer) {
		t.Errorf("got %v", err)
	}
	after, err := os.ReadFile(path)
	if err != nil || string(before) != string(after) {
		t.Errorf("the file was changed (%v)", err)
	}
}

func TestEvents(t *testing.T) {
	j := openAt(t, filepath.Join(t.TempDir(), "journal"))
	defer shut(t, j)
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	add := func(at time.Time, text string) uint64 {
		t.Helper()
		list := []Event{{At: at, Kind: "k", Text: text}}
		if err := j.Append(list); err != nil {
			t.Fatal(err)
		}
		return list[0].ID
	}
	add(now.Add(-KeepFor-time.Hour), "too old")
	second := add(now, "b")
	add(now, "c")
	got, err := j.Events(0, 10)
	if err != nil || len(got) != 2 || got[0].Text != "b" || got[1].Text != "c" {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := j.Events(second, 10); err != nil || len(got) != 1 || got[0].Text != "c" {
		t.Errorf("after the second: %+v %v", got, err)
	}
	if got, err := j.Events(0, 1); err != nil || len(got) != 1 || got[0].Text != "c" {
		t.Errorf("the last one: %+v %v", got, err)
	}
	// Too many: the oldest go. The count is faked by its sequence.
	if err := j.db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte(events)).SetSequence(KeepEvents + 1) }); err != nil {
		t.Fatal(err)
	}
	add(now, "d")
	got, err = j.Events(0, 10)
	if err != nil || len(got) != 2 || got[0].Text != "c" {
		t.Errorf("with too many: %+v %v", got, err)
	}
}
