package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/configs"
)

// tlsDir is where the door's user finds the certificate. It is root's: in a folder of
// the door's own a door that was taken could have root write wherever a link leads.
func (s *Supervisor) tlsDir() string { return s.doorDir() + "-tls" }

// copiesTLS reports whether the door needs a copy of the certificate: as another user it
// can seldom read the original.
func (s *Supervisor) copiesTLS(tls *configs.TLS) bool {
	return tls != nil && os.Geteuid() == 0 && len(s.options.Doors) == 0
}

// doorTLS puts the certificate where the door can read it.
func (s *Supervisor) doorTLS(tls *configs.TLS) *configs.TLS {
	if !s.copiesTLS(tls) {
		return tls
	}
	out, err := copyTLS(s.tlsDir(), tls)
	if err != nil {
		s.log.Error("door.tls", "error", err)
		return tls
	}
	return out
}

// copyTLS copies a certificate for the door's user.
func copyTLS(dir string, tls *configs.TLS) (*configs.TLS, error) {
	out := &configs.TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	return out, errors.Join(copyFor(doorUser, tls.Cert, out.Cert), copyFor(doorUser, tls.Key, out.Key))
}

// renewEvery is how often the files of door.tls are looked at.
const renewEvery = 15 * time.Second

// renewTLS copies a certificate that was renewed in place; the door looks at the copy
// by itself. The files may lie where reading takes its time, so the loop does not wait.
func (s *Supervisor) renewTLS() {
	tls, now := s.plan.config.Door.TLS, s.clock.Now()
	if !s.copiesTLS(tls) || s.gate.renewing || now.Sub(s.gate.renewed) < renewEvery {
		return
	}
	s.gate.renewing, s.gate.renewed = true, now
	s.group.Go(func() {
		out, err := copyTLS(s.tlsDir(), tls)
		s.tell(func() {
			s.gate.renewing = false
			why := ""
			if err != nil {
				why = err.Error()
			} else if s.plan.config.Door.TLS == tls {
				s.gate.tls = out
			}
			if why != s.gate.stale && why != "" {
				s.log.Error("door.tls: the door keeps the certificate that it has", "error", err)
			}
			s.gate.stale = why
		})
	})
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
