//go:build clients

package balancer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// TestClientsH2load: nghttp2's h2load asks for answers and streams over HTTP/2, many at
// once on each of several connections, with TLS and without. Each comes whole.
func TestClientsH2load(t *testing.T) {
	const n = 1000
	files, _ := certificate(t)
	for _, kind := range []string{"plain", "tls"} {
		for _, body := range []string{okBody, strings.Replace(okBody, `{`, `{"stream":true,`, 1)} {
			r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true, Words: 5})}, func(s *control.WorkerSet) {
				if s.Door.HTTP2 = true; kind == "tls" {
					s.Door.TLS = files
				}
			})
			if kind == "tls" {
				r.url = strings.Replace(r.url, "http:", "https:", 1)
			}
			path := filepath.Join(t.TempDir(), "body")
			if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
			all := strconv.Itoa(n)
			out, err := exec.Command("h2load", "-n", all, "-c", "10", "-m", "20", "-d", path, "-H", "content-type: application/json", r.url+"/v1/chat/completions").CombinedOutput()
			text := string(out)
			for _, want := range []string{"Application protocol: h2", all + " succeeded, 0 failed, 0 errored, 0 timeout", "status codes: " + all + " 2xx"} {
				if err != nil || !strings.Contains(text, want) {
					t.Errorf("%s, %s: %v, no %q in\n%s", kind, body, err, want, text)
				}
			}
			served := int64(0)
			for _, w := range r.workers {
				served += w.Served.Load()
			}
			if served != n {
				t.Errorf("%s, %s: workers were asked %d times; want %d", kind, body, served, n)
			}
		}
	}
}
