package balancer_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/sim"
)

// TestPortOfAnother: where a worker was, another program listens by now, and knows no such
// path. The request goes to a worker; what an engine itself does not know stays a 404.
func TestPortOfAnother(t *testing.T) {
	var strange atomic.Bool
	asked := atomic.Int64{}
	m := http.NewServeMux()
	m.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[{"id":"sim","max_model_len":8192}]}`)
	})
	m.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "vllm:kv_cache_usage_perc 0\n") })
	m.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strange.Load() {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"error":{"message":"no such thing","type":"NotFoundError","code":404}}`)
	})
	other := httptest.NewServer(m)
	defer other.Close()
	engine := sim.New(sim.Options{Words: 3})
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	defer engine.Stop()
	r := newRig(t, nil, func(set *control.WorkerSet) {
		set.Pools[0].Models = []string{"sim"}
		set.Pools[0].Policy = "round_robin"
		set.Pools[0].Workers = []control.Worker{
			{Name: "1", URL: other.URL, Generation: 1, Kind: "vllm", State: phase.Ready},
			{Name: "2", URL: engine.URL, Generation: 1, Kind: "vllm", State: phase.Ready},
		}
	})
	for _, stream := range []bool{false, true} {
		strange.Store(true)
		before := asked.Load()
		for range 2 { // in turns, one of them comes to it
			if resp, text := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, stream, "")); resp.StatusCode != 200 {
				t.Errorf("stream %v: %d %s", stream, resp.StatusCode, text)
			}
		}
		if asked.Load() == before {
			t.Errorf("stream %v: the other program was not asked", stream)
		}
	}
	strange.Store(false)
	r.until("an engine's own 404 is passed on", func() bool {
		resp, _ := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, false, ""))
		return resp.StatusCode == http.StatusNotFound
	})
}
