package balancer_test

import (
	"encoding/json"
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

// TestEndingWorkersRefuseNobody: all workers are told to end at once, as when a machine's
// Docker engine stops. What comes to them meanwhile waits for their successors.
func TestEndingWorkersRefuseNobody(t *testing.T) {
	workers := []*sim.Worker{sim.New(sim.Options{Own: true, Words: 3}), sim.New(sim.Options{Own: true, Words: 3})}
	r := newRig(t, workers, nil)
	for _, stream := range []bool{false, true} {
		before := workers[0].Served.Load() + workers[1].Served.Load()
		for _, w := range workers {
			w.EndNext.Store(true)
		}
		answer := make(chan string, 1)
		go func() {
			resp, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, stream, ""))
			answer <- fmt.Sprint(resp.StatusCode, " ", got)
		}()
		r.until("both have refused the request", func() bool { return workers[0].Served.Load()+workers[1].Served.Load() == before+2 })
		r.until("the door knows that both are ending", func() bool {
			for _, w := range r.door.State().Workers {
				if w.State != phase.Unreachable {
					return false
				}
			}
			return true
		})
		for _, w := range workers {
			w.Stop()
			w.Ending.Store(false)
			if err := w.Start(); err != nil {
				t.Fatal(err)
			}
		}
		if got := <-answer; got[:4] != "200 " {
			t.Errorf("stream %v: got %s", stream, got)
		}
	}
}

// TestDrainingWorkerRefusesNobody: a worker of another kind answers 503 once the
// supervisor ends it; the request waits for the next one, also if it passes through.
func TestDrainingWorkerRefusesNobody(t *testing.T) {
	t.Run("chat", func(t *testing.T) { drained(t, "", "/v1/chat/completions", okBody) })
	t.Run("passing through", func(t *testing.T) { drained(t, "any", "/v1/moderations", `{"model":"sim","input":"x"}`) })
}

func drained(t *testing.T, task, path, body string) {
	asked, end := make(chan bool, 1), make(chan bool)
	var ready atomic.Bool
	m := http.NewServeMux()
	m.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[{"id":"sim","max_model_len":8192}]}`)
	})
	m.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "vllm:kv_cache_usage_perc 0\n")
	})
	m.HandleFunc("POST /", func(w http.ResponseWriter, _ *http.Request) {
		if ready.Load() {
			json.NewEncoder(w).Encode(map[string]any{"id": "1", "choices": []any{map[string]any{"index": 0, "message": map[string]string{"content": "hi"}, "finish_reason": "stop"}}})
			return
		}
		asked <- true
		<-end
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	s := httptest.NewServer(m)
	defer s.Close()
	r := newRig(t, nil, func(set *control.WorkerSet) {
		set.Pools[0].Models, set.Pools[0].Task = []string{"sim"}, task
		set.Pools[0].Workers = []control.Worker{{Name: "1", URL: s.URL, Generation: 1, Kind: "vllm", State: phase.Ready}}
	})
	answer := make(chan int, 1)
	go func() {
		resp, _ := r.post(path, body)
		answer <- resp.StatusCode
	}()
	<-asked
	set := r.set
	pools := []control.Pool{set.Pools[0]}
	set.Pools, set.Version = pools, 2
	pools[0].Workers = []control.Worker{{Name: "1", URL: s.URL, Generation: 1, Kind: "vllm", State: phase.Draining}}
	if _, err := r.door.Apply(set); err != nil {
		t.Fatal(err)
	}
	end <- true
	r.until("it waits", func() bool { return len(r.door.Queued()) == 1 })
	ready.Store(true)
	again := set
	again.Pools, again.Version = []control.Pool{pools[0]}, 3
	again.Pools[0].Workers = []control.Worker{{Name: "1", URL: s.URL, Generation: 2, Kind: "vllm", State: phase.Ready}}
	if _, err := r.door.Apply(again); err != nil {
		t.Fatal(err)
	}
	if got := <-answer; got != 200 {
		t.Errorf("got %d", got)
	}
}
