package balancer_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs"
)

// TestLyingMetrics gives the door two workers, one of which says of itself what
// cannot be, or nothing, or never comes to its end: requests are served, and go
// to both.
func TestLyingMetrics(t *testing.T) {
	f := func(name string, metrics http.HandlerFunc) {
		t.Run(name, func(t *testing.T) {
			var served [2]atomic.Int64
			r := newRig(t, nil, func(s *control.WorkerSet) {
				s.Pools[0].Scrape.Interval = 1
				for i := range served {
					m := http.NewServeMux()
					m.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[{"id":"sim"}]}`) })
					m.HandleFunc("GET /metrics", metrics)
					if i == 1 {
						m = http.NewServeMux()
						m.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[{"id":"sim"}]}`) })
						m.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
							io.WriteString(w, "vllm:kv_cache_usage_perc 0.1\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"62500\"} 1\n")
						})
					}
					m.HandleFunc("POST /", func(w http.ResponseWriter, _ *http.Request) {
						served[i].Add(1)
						io.WriteString(w, `{"choices":[{"message":{"content":"hi"}}]}`)
					})
					srv := httptest.NewServer(m)
					t.Cleanup(srv.Close)
					t.Cleanup(srv.CloseClientConnections)
					s.Pools[0].Workers = append(s.Pools[0].Workers, control.Worker{Name: fmt.Sprint(i + 1), URL: srv.URL, Generation: 1, Kind: "vllm", State: "ready"})
				}
			})
			r.until("both are reached", func() bool {
				s := r.door.State().Workers
				return s[0].Reached && s[1].Reached
			})
			for range 40 {
				if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 {
					t.Fatalf("got %d %s", resp.StatusCode, got)
				}
			}
			if a, b := served[0].Load(), served[1].Load(); a < 5 || b < 5 {
				t.Errorf("of 40 requests %d went to the worker that lies and %d to the other", a, b)
			}
		})
	}
	say := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
	}
	const config = "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"62500\"} 1\n"
	f("NaN", say(config+"vllm:kv_cache_usage_perc NaN\nvllm:num_requests_running NaN\nvllm:num_requests_waiting -Inf\nvllm:prefix_cache_hits_total NaN\nvllm:prefix_cache_queries_total NaN\n"))
	f("absurd", say(config+"vllm:kv_cache_usage_perc 1e300\nvllm:num_requests_running 1e300\nvllm:generation_tokens_total 1e300\n"))
	f("negative", say(config+"vllm:kv_cache_usage_perc -3\nvllm:num_requests_waiting -1\n"))
	f("nothing", say(""))
	f("no capacity", say("vllm:kv_cache_usage_perc 0.2\nvllm:num_requests_running 0\n"))
	f("a page", say("<html><body>hello"))
	f("an error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	f("no end", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	f("more and more", func(w http.ResponseWriter, r *http.Request) {
		for line := []byte(strings.Repeat("x 1\n", 1<<14)); r.Context().Err() == nil; {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
}

// TestScrapePace scrapes a worker often while it has requests, and seldom while
// it has none.
func TestScrapePace(t *testing.T) {
	c := newSilentCache(t)
	gate := make(chan struct{})
	busy := http.NewServeMux()
	busy.HandleFunc("GET /", c.Config.Handler.ServeHTTP)
	busy.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) { <-gate; c.Config.Handler.ServeHTTP(w, r) })
	srv := httptest.NewServer(busy)
	t.Cleanup(srv.Close)
	r := newRig(t, nil, func(s *control.WorkerSet) {
		s.Pools[0].Workers = []control.Worker{{Name: "1", URL: srv.URL, Generation: 1, Kind: "vllm", State: "ready"}}
		s.Pools[0].Scrape.Interval = configs.Duration(time.Millisecond)
	})
	r.until("the worker is reached", func() bool { return r.door.State().Workers[0].Reached })
	began, before := time.Now(), c.scrapes.Load()
	r.until("an idle worker is scraped", func() bool { return c.scrapes.Load() > before+1 })
	if took := time.Since(began); took < 900*time.Millisecond {
		t.Errorf("two scrapes of an idle worker took %v", took)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.post("/v1/chat/completions", okBody)
	}()
	r.until("the request is there", func() bool { return r.door.State().Workers[0].Requests.InFlight == 1 })
	before = c.scrapes.Load()
	r.until("a busy worker is scraped", func() bool { return c.scrapes.Load() > before+100 }) // 100 s, if it were idle
	close(gate)
	<-done
}
