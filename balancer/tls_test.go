package balancer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// certificate writes a key pair for 127.0.0.1 and returns who signed it.
func certificate(t *testing.T) (*configs.TLS, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := &configs.TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(files.Cert, certPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return files, pool
}

// TestTLS serves answers and streams, and sees a client leave, over TLS.
func TestTLS(t *testing.T) {
	files, pool := certificate(t)
	w := sim.New(sim.Options{Own: true, Words: 20})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) { s.Door.TLS = files })
	r.url = strings.Replace(r.url, "http:", "https:", 1)
	r.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
	for range 3 {
		if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 || !strings.Contains(got, words(0, 20)) {
			t.Fatalf("got %d %s", resp.StatusCode, got)
		}
		_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""))
		if s := hear(t, got); s.text != words(0, 20) || !s.done {
			t.Fatalf("got %+v", s)
		}
	}
	long := strings.Replace(okBody, `"x"`, `"`+strings.Repeat("long ", 50_000)+`"`, 1)
	if resp, got := r.post("/v1/chat/completions", long); resp.StatusCode != 400 || !strings.Contains(got, "tokens") {
		t.Fatalf("a prompt that fits no worker: got %d %s", resp.StatusCode, got)
	}
	w.Pace = time.Minute
	ctx, cancel := contextOf(t)
	go func() {
		r.until("the worker has it", func() bool { return w.Live.Load() == 1 })
		cancel()
	}()
	req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/chat/completions", strings.NewReader(okBody))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := r.client.Do(req); err == nil {
		resp.Body.Close()
	}
	r.until("the worker is told that the client has left", func() bool { return w.Cancelled.Load() == 1 })
}
