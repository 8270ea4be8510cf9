package plugins

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// certificates is the host's half of the mutual TLS with one process: made for its
// start, gone with it. The plugin's half comes back in its handshake line.
//
// go-plugin would make these itself with AutoMTLS, on P-521, which the TLS library
// of grpcio (Python, Ruby, PHP …) refuses. With P-256 and the same protocol a
// plugin in any language can check who calls it.
type certificates struct {
	config *tls.Config
	pem    string // of the host's certificate, for the plugin to trust
}

func newCertificates() (certificates, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificates{}, fmt.Errorf("cannot make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return certificates{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "localhost"},
		DNSNames:              []string{"localhost"},
		NotBefore:             time.Now().Add(-time.Hour), // a clock may be set back between two processes' looks
		NotAfter:              time.Now().AddDate(30, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		IsCA:                  true, // the plugin trusts it as the one root
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return certificates{}, fmt.Errorf("cannot make a certificate: %w", err)
	}
	return certificates{
		config: &tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
			MinVersion:   tls.VersionTLS12,
			ServerName:   "localhost",
			// RootCAs is set by go-plugin from the handshake line. Until then nobody
			// is trusted, so a plugin that sends no certificate is not talked to.
			RootCAs: x509.NewCertPool(),
		},
		pem: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
	}, nil
}
