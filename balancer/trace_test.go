package balancer_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// collector is an OpenTelemetry collector's HTTP side.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	raw   string
	spans []map[string]any
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		var body struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []map[string]any }
			}
		}
		if err != nil || json.Unmarshal(b, &body) != nil {
			t.Errorf("the collector cannot read %s: %v", b, err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw += string(b)
		for _, r := range body.ResourceSpans {
			for _, s := range r.ScopeSpans {
				c.spans = append(c.spans, s.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// attributes are a span's, by key.
func attributes(span map[string]any) map[string]string {
	out := map[string]string{}
	list, _ := span["attributes"].([]any)
	for _, a := range list {
		m, _ := a.(map[string]any)
		value, _ := m["value"].(map[string]any)
		for _, v := range value {
			out[fmt.Sprint(m["key"])] = fmt.Sprint(v)
		}
	}
	return out
}

// TestTraces follows one request from the client's span through the door's to
// the worker's, by what a collector and the worker got.
func TestTraces(t *testing.T) {
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	c := newCollector(t)
	w := sim.New(sim.Options{Own: true, Words: 4})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) { s.OTLP.Endpoint = c.URL })
	r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""), "traceparent", "00-"+trace+"-"+parent+"-01", "tracestate", "vendor=1")
	r.post("/v1/chat/completions", okBody, "traceparent", "00-"+trace+"-"+parent+"-00")
	r.post("/v1/chat/completions", strings.Replace(okBody, `"sim"`, `"none"`, 1))
	var server, client, refused map[string]any
	r.until("the collector has three spans", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.spans {
			switch {
			case s["name"] == "ask worker":
				client = s
			case s["name"] == "chat sim":
				server = s
			case strings.HasPrefix(fmt.Sprint(s["name"]), "chat"):
				refused = s
			}
		}
		return server != nil && client != nil && refused != nil
	})
	if server["traceId"] != trace || server["parentSpanId"] != parent || server["traceState"] != "vendor=1" || server["kind"] != 2.0 {
		t.Errorf("the door's span is %v", server)
	}
	if client["traceId"] != trace || client["parentSpanId"] != server["spanId"] || client["kind"] != 3.0 {
		t.Errorf("the worker's span is %v", client)
	}
	heads := w.Heads()
	if got := heads[0].Get("traceparent"); got != fmt.Sprintf("00-%s-%s-01", trace, client["spanId"]) || heads[0].Get("tracestate") != "vendor=1" {
		t.Errorf("the worker was given %q %q", got, heads[0].Get("tracestate"))
	}
	if got := heads[1].Get("traceparent"); !strings.HasPrefix(got, "00-"+trace+"-") || !strings.HasSuffix(got, "-00") {
		t.Errorf("what is not sampled was handed on as %q", got)
	}
	a := attributes(server)
	for key, want := range map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.request.model": "sim", "gen_ai.usage.output_tokens": "4", "http.response.status_code": "200",
		"roundhouse.worker": "p/1", "roundhouse.pool": "p", "roundhouse.outcome": "ok",
	} {
		if a[key] != want {
			t.Errorf("%s is %q; want %q", key, a[key], want)
		}
	}
	if a["gen_ai.server.time_to_first_token"] == "" || a["gen_ai.usage.input_tokens"] == "" {
		t.Errorf("attributes are %v", a)
	}
	if got := attributes(refused)["http.response.status_code"]; got != "404" {
		t.Errorf("a refused request's span says %s", got)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spans) != 3 || strings.Contains(c.raw, "count") {
		t.Errorf("%d spans, which must hold nothing of a prompt: %s", len(c.spans), c.raw)
	}
}

// TestTracesOff hands nothing on where no endpoint is configured.
func TestTracesOff(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 1})
	r := newRig(t, []*sim.Worker{w}, nil)
	r.post("/v1/chat/completions", okBody, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if got := w.Heads()[0].Get("traceparent"); got != "" {
		t.Errorf("the worker was given %q", got)
	}
}

// TestTracesNeverWait serves while the collector takes nothing.
func TestTracesNeverWait(t *testing.T) {
	hold := make(chan struct{})
	c := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	defer c.Close()
	defer close(hold)
	w := sim.New(sim.Options{Own: true, Words: 1})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) { s.OTLP.Endpoint = c.URL })
	for range 50 {
		if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 {
			t.Fatalf("got %d %s", resp.StatusCode, got)
		}
	}
}
