package keyfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundhouse/configs"
)

func made(name string) Made {
	_, sum := NewKey()
	k := Made{Key: configs.NewKey(name), Created: time.Unix(1, 0).UTC()}
	k.SHA256 = []string{sum}
	return k
}

func names(s *Store) (out string) {
	for _, k := range s.List() {
		out += k.Name + " "
	}
	return out
}

// TestStore: keys outlive the process, only their owner reads the file, and once there
// was a key the door goes on asking for one.
func TestStore(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir)
	if s.Asked() || names(s) != "" {
		t.Fatal("a fresh folder has keys")
	}
	if first, err := s.Add(made("a"), nil); err != nil || !first {
		t.Fatal(first, err)
	}
	if first, err := s.Add(made("b"), nil); err != nil || first {
		t.Fatal(first, err)
	}
	info, err := os.Stat(filepath.Join(dir, Name))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if s = Open(dir); names(s) != "a b " || s.Fault() != nil {
		t.Errorf("opened again: %q %v", names(s), s.Fault())
	}
	for _, name := range []string{"a", "b"} {
		if err := s.Remove(name); err != nil {
			t.Error(err)
		}
	}
	if err := s.Remove("a"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if s = Open(dir); names(s) != "" || !s.Asked() {
		t.Error("the last key's end has opened the door")
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("files are left over: %v", left)
	}
}

// TestStoreRefuses: one name, one client; nothing that the door could not read.
func TestStoreRefuses(t *testing.T) {
	s, old := Open(t.TempDir()), made("old")
	if _, err := s.Add(old, nil); err != nil {
		t.Fatal(err)
	}
	configured := []configs.Key{made("theirs").Key}
	f := func(want error, says string, change func(*Made)) {
		t.Helper()
		k := made("new")
		change(&k)
		if _, err := s.Add(k, configured); !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want %v with %s", err, want, says)
		}
	}
	f(ErrThere, `"old"`, func(k *Made) { k.Name = "old" })
	f(ErrThere, `"theirs"`, func(k *Made) { k.Name = "theirs" })
	f(ErrThere, `of "old"`, func(k *Made) { k.SHA256 = []string{strings.ToUpper(old.SHA256[0])} })
	f(ErrThere, `of "theirs"`, func(k *Made) { k.SHA256 = configured[0].SHA256 })
	f(ErrInvalid, "name", func(k *Made) { k.Name = "" })
	f(ErrInvalid, "name", func(k *Made) { k.Name = "a\nb" })
	f(ErrInvalid, "sha256", func(k *Made) { k.SHA256 = []string{"12"} })
	f(ErrInvalid, "models", func(k *Made) { k.Models = nil })
	f(ErrInvalid, "expires", func(k *Made) { k.Expires = "soon" })
	f(ErrInvalid, "priority", func(k *Made) { k.Priority = "urgent" })
	f(ErrInvalid, "weight", func(k *Made) { k.Weight = 0 })
	f(ErrInvalid, "below 0", func(k *Made) { k.MaxConcurrent = -1 })
	f(ErrInvalid, "budget", func(k *Made) { k.Month.TokensOut = -1 })
	if _, err := Open("").Add(made("new"), nil); err == nil || !strings.Contains(err.Error(), "--state-dir") {
		t.Error(err)
	}
	if keys := s.Keys([]configs.Key{{Name: "old"}}); len(keys) != 0 {
		t.Error("the configuration's key does not hold before one of its name")
	}
}

// TestStoreDamaged: a damaged file is named and kept aside; the door goes on asking, now
// and after the next start, and new keys can be made.
func TestStoreDamaged(t *testing.T) {
	f := func(name string, damage func(string) string) {
		t.Helper()
		dir := t.TempDir()
		path := filepath.Join(dir, Name)
		if _, err := Open(dir).Add(made("a"), nil); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := damage(string(text))
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		s := Open(dir)
		if s.Fault() == nil || !strings.Contains(s.Fault().Error(), path) || !s.Asked() || names(s) != "" {
			t.Errorf("%s: %v, asked %v, keys %q", name, s.Fault(), s.Asked(), names(s))
		}
		aside, _ := filepath.Glob(path + ".damaged-*")
		if len(aside) != 1 {
			t.Fatalf("%s: set aside as %v", name, aside)
		}
		if kept, err := os.ReadFile(aside[0]); err != nil || string(kept) != bad {
			t.Errorf("%s: what is set aside is another: %v", name, err)
		}
		if s = Open(dir); !s.Asked() || s.Fault() != nil {
			t.Errorf("%s: after the next start the door asks for none: %v", name, s.Fault())
		}
		if _, err := s.Add(made("b"), nil); err != nil {
			t.Error(err)
		}
	}
	f("cut", func(s string) string { return s[:len(s)/2] })
	f("empty", func(string) string { return "" })
	f("a letter of a name", func(s string) string { return strings.Replace(s, `"name":"a"`, `"name":"b"`, 1) })
	f("another version's", func(s string) string { return strings.Replace(s, `"schema":1`, `"schema":9`, 1) })
}
