package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// certificate is one that signs itself, and the files that relays read it from.
type certificate struct {
	cert, key, both string // PEM
	pool            *x509.CertPool
}

// selfSigned makes a certificate for the loopback.
func selfSigned(dir string) (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	like := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, like, like, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	c := &certificate{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), both: filepath.Join(dir, "both.pem"), pool: x509.NewCertPool()}
	c.pool.AppendCertsFromPEM(certPEM)
	for path, text := range map[string][]byte{c.cert: certPEM, c.key: keyPEM, c.both: slices.Concat(certPEM, keyPEM)} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// client is how a client connects to whoever has the certificate.
func (c *certificate) client() *tls.Config { return &tls.Config{RootCAs: c.pool} }
