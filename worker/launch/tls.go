package launch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// TLS are --ssl-keyfile and its companions.
type TLS struct {
	Key, Cert, CA string
	Clients       int    // whether clients show a certificate: 0 no, 1 if they like, 2 they must
	Ciphers       string // OpenSSL's names, for TLS 1.2
	Refresh       bool   // the files are read again when they change
}

func (t *TLS) on() bool { return t.Key != "" || t.Cert != "" }

// check compares the flags with each other.
func (t *TLS) check() error {
	_, err := t.suites()
	switch {
	case err != nil:
		return err
	case t.on() && t.Cert == "":
		return errors.New("--ssl-keyfile needs --ssl-certfile")
	case t.Clients > 2:
		return fmt.Errorf("--ssl-cert-reqs %d: want 0, 1 or 2", t.Clients)
	case t.Clients > 0 && t.CA == "":
		return errors.New("--ssl-cert-reqs needs --ssl-ca-certs, by which clients' certificates are held true")
	}
	return nil
}

// suites are the cipher suites that OpenSSL's names mean; nil: Go's choice.
func (t *TLS) suites() ([]uint16, error) {
	known := map[string]uint16{
		"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
	var out []uint16
	for _, name := range strings.FieldsFunc(t.Ciphers, func(r rune) bool { return r == ':' || r == ',' || r == ' ' }) {
		id, ok := known[name]
		if !ok {
			var names []string
			for n := range known {
				names = append(names, n)
			}
			slices.Sort(names)
			return nil, fmt.Errorf("--ssl-ciphers: %q is not supported; want some of %s", name, strings.Join(names, ":"))
		}
		out = append(out, id)
	}
	return out, nil
}

// identity is the server's certificate and the authorities of its clients', as
// the files were when they were last read.
type identity struct {
	t   *TLS
	log *slog.Logger

	mu     sync.Mutex
	read   time.Time // the newest change of the files that are in use
	config *tls.Config
}

// open reads the files; they are found wrong before a model is loaded.
func (t *TLS) open(log *slog.Logger) (*tls.Config, error) {
	id := &identity{t: t, log: log, read: t.changed()}
	config, err := t.load()
	if err != nil {
		return nil, err
	}
	id.config = config
	if !t.Refresh {
		return config, nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: config.NextProtos, GetConfigForClient: id.current}, nil
}

// current is the configuration of a handshake. Files that are wrong are told
// once, and the old ones stay.
func (id *identity) current(*tls.ClientHelloInfo) (*tls.Config, error) {
	id.mu.Lock()
	defer id.mu.Unlock()
	if at := id.t.changed(); !at.Equal(id.read) {
		id.read = at
		config, err := id.t.load()
		if err != nil {
			id.log.Error("the old certificate stays", "error", err)
		} else {
			id.config = config
			id.log.Info("the certificate was read anew")
		}
	}
	return id.config, nil
}

// changed is when the files were last changed.
func (t *TLS) changed() time.Time {
	var last time.Time
	for _, name := range []string{t.Key, t.Cert, t.CA} {
		if st, err := os.Stat(name); err == nil && st.ModTime().After(last) {
			last = st.ModTime()
		}
	}
	return last
}

func (t *TLS) load() (*tls.Config, error) {
	key := t.Key
	if key == "" {
		key = t.Cert // a file may hold both
	}
	cert, err := tls.LoadX509KeyPair(t.Cert, key)
	if err != nil {
		return nil, fmt.Errorf("--ssl-certfile %s, --ssl-keyfile %s: %w", t.Cert, key, err)
	}
	suites, err := t.suites()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, CipherSuites: suites, NextProtos: []string{"http/1.1"}}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("--ssl-ca-certs: %w", err)
		}
		c.ClientCAs = x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--ssl-ca-certs %s: no certificate in PEM is in it", t.CA)
		}
		c.ClientAuth = []tls.ClientAuthType{tls.NoClientCert, tls.VerifyClientCertIfGiven, tls.RequireAndVerifyClientCert}[t.Clients]
	}
	return c, nil
}
