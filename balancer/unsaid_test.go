package balancer_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
)

// TestModelsNotSaidYet has an engine that shows its metrics before it says which
// model it serves: what is asked for meanwhile may well be there, so clients are
// told to come again. Only after that is a model unknown.
func TestModelsNotSaidYet(t *testing.T) {
	var says atomic.Bool
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/metrics":
			fmt.Fprintln(w, "vllm:kv_cache_usage_perc 0")
		case r.URL.Path == "/v1/models" && says.Load():
			fmt.Fprint(w, `{"object":"list","data":[{"id":"m","max_model_len":4096}]}`)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer engine.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d, err := balancer.New(balancer.Options{Listener: ln, Log: slog.New(slog.DiscardHandler), Set: &control.WorkerSet{
		Schema: 1, Epoch: 1, Version: 1, Pools: []control.Pool{{Name: "p", Policy: "least_kv", Workers: []control.Worker{
			{Name: "w", URL: engine.URL, Generation: 1, Kind: "vllm", State: "ready"},
		}}}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx, context.Background()) }()
	client := &http.Client{}
	defer func() {
		client.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	ask := func(method, path, body string) (status int, retry, text string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+ln.Addr().String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("Retry-After"), string(b)
	}
	until := func(what string, f func() bool) {
		for end := time.After(time.Minute); !f(); {
			select {
			case <-end:
				t.Fatalf("%s: not within a minute", what)
			case <-time.After(2 * time.Millisecond):
			}
		}
	}
	until("the engine was asked, and has said nothing", func() bool {
		w := d.State().Workers[0]
		return w.State == "unreachable" && strings.Contains(w.Reason, "503")
	})
	f := func(method, path, body string) {
		t.Helper()
		status, retry, text := ask(method, path, body)
		if status != 503 || retry == "" || !strings.Contains(text, `pool \"p\"`) {
			t.Errorf("%s %s before the engine says what it serves: %d, Retry-After %q, %s", method, path, status, retry, text)
		}
	}
	f("POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}]}`)
	f("POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`)
	f("GET", "/v1/models/m", "")
	says.Store(true)
	until("the model is there", func() bool {
		status, _, _ := ask("GET", "/v1/models/m", "")
		return status == 200
	})
	if status, _, text := ask("POST", "/v1/chat/completions", `{"model":"none","messages":[{"role":"user","content":"x"}]}`); status != 404 || !strings.Contains(text, "model_not_found") {
		t.Errorf("a model that nobody serves: %d %s", status, text)
	}
}
