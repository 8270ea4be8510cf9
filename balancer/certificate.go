package balancer

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"roundhouse/configs"
)

// certificate is what the door shows to those who speak TLS with it. The pair is
// read again when its files change, so that one that is renewed in place is taken
// up without a word from anybody.
type certificate struct {
	files  configs.TLS
	config *tls.Config
	pair   atomic.Pointer[tls.Certificate]
	read   [2]stamp // the files, when they were read last
	err    error    // what was wrong with them then
}

// stamp tells a file from the one that was under its name before.
type stamp struct {
	at   time.Time
	size int64
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size()}
}

// readCertificate reads a pair for the first time.
func readCertificate(files configs.TLS) (*certificate, error) {
	c := &certificate{files: files}
	c.config = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.pair.Load(), nil }}
	if _, err := c.refresh(); err != nil {
		return nil, err
	}
	return c, nil
}

// refresh reads the pair again if its files have changed. One that does not load
// replaces nothing.
func (c *certificate) refresh() (changed bool, err error) {
	now := [2]stamp{stampOf(c.files.Cert), stampOf(c.files.Key)}
	if now == c.read && c.pair.Load() != nil {
		return false, c.err
	}
	c.read, c.err = now, nil
	pair, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		c.err = fmt.Errorf("door.tls: %w", err)
		return false, c.err
	}
	c.pair.Store(&pair)
	return true, nil
}

// shown is the certificate's configuration; nil for plain HTTP.
func (c *certificate) shown() *tls.Config {
	if c == nil {
		return nil
	}
	return c.config
}

// certify finds the certificate of a worker set. Where its files do not load, the
// old one stays, and so does plain HTTP: with it comes the error. d.mu is held.
func (d *Door) certify(want *configs.TLS) (*certificate, error) {
	if want == nil {
		return nil, nil
	}
	old := d.cert
	if old != nil && old.files == *want {
		_, err := old.refresh()
		return old, err
	}
	c, err := readCertificate(*want)
	if err != nil {
		return old, err
	}
	return c, nil
}

// recertify looks whether the certificate's files have changed. d.mu is held.
func (d *Door) recertify() {
	v := d.current()
	want := v.set.Door.TLS
	if want == nil {
		return
	}
	if d.cert != nil && d.cert.files == *want {
		changed, err := d.cert.refresh()
		switch {
		case err != nil:
			d.faults.note(d.log, faultCertificate, err)
		case changed:
			d.faults.note(d.log, faultCertificate, nil)
			d.log.Info("the certificate was renewed", "cert", want.Cert)
		}
		return
	}
	if c, err := readCertificate(*want); err == nil { // that of the set in force did not load before
		next := *v
		d.cert, next.tls = c, c.shown()
		d.view.Store(&next)
		d.faults.note(d.log, faultCertificate, nil)
	}
}
