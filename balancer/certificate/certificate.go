package certificate

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"roundhouse/configs"
)

// Certificate is what the door shows to those who speak TLS with it. The pair is
// read again when its files change, so that one that is renewed in place is taken
// up without a word from anybody.
type Certificate struct {
	Files  configs.TLS
	config [2]*tls.Config // without HTTP/2, and with it
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

// Read reads a pair for the first time.
func Read(files configs.TLS) (*Certificate, error) {
	c := &Certificate{Files: files}
	for i, protos := range [][]string{{"http/1.1"}, {"h2", "http/1.1"}} {
		c.config[i] = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protos,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.pair.Load(), nil }}
	}
	if _, err := c.Refresh(); err != nil {
		return nil, err
	}
	return c, nil
}

// Refresh reads the pair again if its files have changed. One that does not load
// replaces nothing.
func (c *Certificate) Refresh() (changed bool, err error) {
	now := [2]stamp{stampOf(c.Files.Cert), stampOf(c.Files.Key)}
	if now == c.read && c.pair.Load() != nil {
		return false, c.err
	}
	c.read, c.err = now, nil
	pair, err := tls.LoadX509KeyPair(c.Files.Cert, c.Files.Key)
	if err != nil {
		c.err = fmt.Errorf("door.tls: %w", err)
		return false, c.err
	}
	c.pair.Store(&pair)
	return true, nil
}

// Shown is the certificate's configuration, which offers HTTP/2 or not; nil for plain
// HTTP.
func (c *Certificate) Shown(http2 bool) *tls.Config {
	switch {
	case c == nil:
		return nil
	case http2:
		return c.config[1]
	}
	return c.config[0]
}
