package extproc

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
)

// sniffing lets gateways speak TLS or plain HTTP/2 to one port: the first byte
// tells. Most speak TLS to a picker and do not look at its certificate; some need it off.
type sniffing struct{ config *tls.Config }

// firstOfTLS is the first byte of a TLS handshake.
const firstOfTLS = 0x16

func newCredentials(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (credentials.TransportCredentials, error) {
	if certificate == nil {
		made, err := selfSigned()
		if err != nil {
			return nil, err
		}
		certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return made, nil }
	}
	return &sniffing{&tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, GetCertificate: certificate}}, nil
}

// selfSigned makes a certificate for a gateway that does not look at it.
func selfSigned() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "roundhouse picker"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(10, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// noTLS is what is known of a connection without TLS.
type noTLS struct{ credentials.CommonAuthInfo }

// AuthType implements credentials.AuthInfo.
func (noTLS) AuthType() string { return "plain" }

// peeked is a connection whose first bytes were looked at.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

// Read implements net.Conn.
func (c *peeked) Read(p []byte) (int, error) { return c.r.Read(p) }

// ServerHandshake implements credentials.TransportCredentials. The server bounds the time
// that it takes.
func (s *sniffing) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c := &peeked{raw, bufio.NewReader(raw)}
	first, err := c.r.Peek(1)
	if err != nil {
		return nil, nil, err
	}
	if first[0] != firstOfTLS {
		return c, noTLS{credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}, nil
	}
	t := tls.Server(c, s.config)
	if err := t.Handshake(); err != nil {
		return nil, nil, err
	}
	return t, credentials.TLSInfo{State: t.ConnectionState(), CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (s *sniffing) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("a picker calls nobody")
}

// Info implements credentials.TransportCredentials.
func (s *sniffing) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls", SecurityVersion: "1.2"}
}

// Clone implements credentials.TransportCredentials.
func (s *sniffing) Clone() credentials.TransportCredentials { return &sniffing{s.config.Clone()} }

// OverrideServerName implements credentials.TransportCredentials.
func (s *sniffing) OverrideServerName(string) error { return nil }
