package supervisor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"roundhouse/configs"
)

// A certificate is copied beside links and files that somebody has put in its way, and
// none of them is written to.
func TestCertificateFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path, want string) {
		t.Helper()
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", path, got, err, want)
		}
	}
	write(at("from"), "new")
	for name, plant := range map[string]func(path string) error{
		"a link":      func(path string) error { return os.Symlink(at("victim"), path) },
		"a hard link": func(path string) error { return os.Link(at("victim"), path) },
		"a leftover":  func(path string) error { return os.WriteFile(path, []byte("half"), 0o400) },
	} {
		write(at("victim"), "untouched")
		if err := plant(at("to.new")); err != nil {
			t.Fatal(err)
		}
		os.Remove(at("to"))
		if err := copyFor(os.Getuid(), at("from"), at("to")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		read(at("victim"), "untouched")
		read(at("to"), "new")
		if info, err := os.Lstat(at("to")); err != nil || info.Mode() != 0o400 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// As root the folder of the copy is root's, and the door's user can read what is in it
// and change nothing. Anybody else's door finds the original.
func TestCertificateLiesInRootsFolder(t *testing.T) {
	b := newBench(t, 1, nil)
	cert, key := filepath.Join(b.dir, "cert.pem"), filepath.Join(b.dir, "key.pem")
	for _, path := range []string{cert, key} {
		if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.cfg.Door.TLS = &configs.TLS{Cert: cert, Key: key}
	b.run()
	var told *configs.TLS
	if err := b.s.ask(t.Context(), func() { told = b.s.gate.tls }); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 { // the door is this user, and finds the original
		if told.Cert != cert || told.Key != key {
			t.Errorf("the door is told %+v", told)
		}
		return
	}
	owner := func(path string) (uid uint32, mode os.FileMode) {
		t.Helper()
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Uid, info.Mode().Perm()
	}
	if uid, mode := owner(filepath.Dir(told.Key)); uid != 0 || mode != 0o711 {
		t.Errorf("the folder belongs to %d, mode %o", uid, mode)
	}
	for _, path := range []string{told.Cert, told.Key} {
		if uid, mode := owner(path); uid != doorUser || mode != 0o400 {
			t.Errorf("%s belongs to %d, mode %o", path, uid, mode)
		}
	}
	for _, text := range []string{"renewed", "again"} {
		if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b.until("the copy is renewed", func() bool {
			b.s.ask(t.Context(), func() { b.s.gate.renewed = time.Time{} }) // as if the time were over
			got, err := os.ReadFile(told.Key)
			return err == nil && string(got) == text
		})
	}
}
