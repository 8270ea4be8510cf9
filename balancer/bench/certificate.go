package main

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"slices"

	"roundhouse/test/selfsigned"
)

// certificate is what relays show and clients trust; nil: they speak plainly.
type certificate struct {
	*selfsigned.Certificate
	both string // certificate and key in one file, as HAProxy reads them
}

// newCertificate makes a certificate for the loopback.
func newCertificate(dir string) (*certificate, error) {
	made, err := selfsigned.Write(dir)
	if err != nil {
		return nil, err
	}
	cert, err := os.ReadFile(made.Cert)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(made.Key)
	if err != nil {
		return nil, err
	}
	c := &certificate{made, filepath.Join(dir, "both.pem")}
	return c, os.WriteFile(c.both, slices.Concat(cert, key), 0o600)
}

// dial connects to whoever shows the certificate.
func (c *certificate) dial(network, addr string) (net.Conn, error) {
	if c == nil {
		return net.Dial(network, addr)
	}
	return tls.Dial(network, addr, &tls.Config{RootCAs: c.Pool})
}
