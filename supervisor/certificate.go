package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"roundhouse/configs"
)

// tlsDir is where the door's user finds the certificate. It is root's: in a folder of
// the door's own a door that was taken could have root write wherever a link leads.
func (s *Supervisor) tlsDir() string { return s.doorDir() + "-tls" }

// doorTLS puts the certificate where the door can read it: as another user it
// can seldom read the original.
func (s *Supervisor) doorTLS(tls *configs.TLS) *configs.TLS {
	if tls == nil || os.Geteuid() != 0 || len(s.options.Doors) > 0 {
		return tls
	}
	dir := s.tlsDir()
	out := configs.TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	err := os.MkdirAll(dir, 0o711)
	if err == nil {
		err = errors.Join(copyFor(doorUser, tls.Cert, out.Cert), copyFor(doorUser, tls.Key, out.Key))
	}
	if err != nil {
		s.log.Error("door.tls", "error", err)
		return tls
	}
	return &out
}

// copyFor copies a file for a user, unless it is there as it should be. It follows no
// link and writes into no file that is there already.
func copyFor(user int, from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(to); err == nil && string(old) == string(data) {
		return nil
	}
	next := to + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o400)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chown(user, user)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(next, to)
}
