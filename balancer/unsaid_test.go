package balancer_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
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
	r := foreignRig(t, map[string]string{"w": engine.URL})
	r.until("the engine was asked, and has said nothing", func() bool {
		w := r.door.State().Workers[0]
		return w.State == "unreachable" && strings.Contains(w.Reason, "503")
	})
	card := func() (*http.Response, string) {
		resp, err := r.client.Get(r.url + "/v1/models/m")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}
	f := func(what string, resp *http.Response, text string) {
		t.Helper()
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(text, `pool \"p\"`) {
			t.Errorf("%s before the engine says what it serves: %s, Retry-After %q, %s", what, resp.Status, resp.Header.Get("Retry-After"), text)
		}
	}
	ask := func(body string) (*http.Response, string) { return r.post("/v1/chat/completions", body) }
	resp, text := ask(`{"model":"m","messages":[{"role":"user","content":"x"}]}`)
	f("a chat", resp, text)
	resp, text = ask(`{"messages":[{"role":"user","content":"x"}]}`)
	f("a chat that names no model", resp, text)
	resp, text = card()
	f("the model's card", resp, text)
	says.Store(true)
	r.until("the model is there", func() bool {
		resp, _ := card()
		return resp.StatusCode == 200
	})
	if resp, text := ask(`{"model":"none","messages":[{"role":"user","content":"x"}]}`); resp.StatusCode != 404 || !strings.Contains(text, "model_not_found") {
		t.Errorf("a model that nobody serves: %s %s", resp.Status, text)
	}
}

// TestModelsOfAnotherNotSaidYet: one worker has said what it serves, another was not heard
// yet. What only that one may serve is not refused for good.
func TestModelsOfAnotherNotSaidYet(t *testing.T) {
	says := make(chan struct{})
	engine := func(model string, wait <-chan struct{}) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-wait:
			case <-r.Context().Done():
			}
			switch r.URL.Path {
			case "/metrics":
				fmt.Fprintln(w, "vllm:kv_cache_usage_perc 0")
			case "/v1/models":
				fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"max_model_len":4096}]}`, model)
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	open := make(chan struct{})
	close(open)
	r := foreignRig(t, map[string]string{"a": engine("first", open).URL, "b": engine("second", says).URL})
	status := func(model string) int {
		resp, err := r.client.Get(r.url + "/v1/models/" + model)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	r.until("the first has said what it serves", func() bool { return status("first") == 200 })
	if got := status("second"); got != 503 {
		t.Errorf("status %d before the second was heard; want 503", got)
	}
	close(says)
	r.until("the second has said what it serves", func() bool { return status("second") == 200 })
	if got := status("none"); got != 404 {
		t.Errorf("status %d for a model that nobody serves; want 404", got)
	}
}
