package balancer_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
	"roundhouse/test/selfsigned"
)

// certificate writes a key pair for 127.0.0.1 and returns who signed it.
func certificate(t *testing.T) (*configs.TLS, *x509.CertPool) {
	t.Helper()
	c, err := selfsigned.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &configs.TLS{Cert: c.Cert, Key: c.Key}, c.Pool
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
	if resp, got := r.post("/v1/chat/completions", long); resp.StatusCode != 200 || !strings.Contains(got, words(0, 20)) {
		t.Fatalf("a long prompt: got %d %s", resp.StatusCode, got)
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
