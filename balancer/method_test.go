package balancer_test

import (
	"io"
	"net/http"
	"testing"

	"roundhouse/balancer/sim"
)

// TestMethodsAreNamed: who asks by a method that a path does not take is told those that
// it does, also by a HEAD for what a worker would answer with a body.
func TestMethodsAreNamed(t *testing.T) {
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true, Words: 1})}, nil)
	for _, c := range []struct{ method, path, allow string }{
		{"GET", "/v1/chat/completions", "POST, OPTIONS"},
		{"DELETE", "/v1/embeddings", "POST, OPTIONS"},
		{"HEAD", "/v1/chat/completions", "POST, OPTIONS"},
		{"POST", "/v1/models", "GET, HEAD, OPTIONS"},
		{"HEAD", "/v1/responses/resp_1", "GET, DELETE, OPTIONS"},
		{"POST", "/v1/responses/resp_1", "GET, DELETE, OPTIONS"},
		{"GET", "/v1/responses/resp_1/cancel", "POST, OPTIONS"},
		{"DELETE", "/v1/responses/resp_1/input_items", "GET, OPTIONS"},
		{"PUT", "/v1/models", "GET, HEAD, POST, DELETE, OPTIONS"},
	} {
		req, err := http.NewRequest(c.method, r.url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 405 || resp.Header.Get("Allow") != c.allow || (len(body) == 0) != (c.method == "HEAD") {
			t.Errorf("%s %s: %d, allow %q, %q, %v", c.method, c.path, resp.StatusCode, resp.Header.Get("Allow"), body, err)
		}
	}
}
