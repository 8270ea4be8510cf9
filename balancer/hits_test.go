package balancer_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"roundhouse/balancer/control"
)

// silentCache is a vLLM whose answers do not say what was cached, and whose
// counters do.
type silentCache struct {
	*httptest.Server
	queries, hits atomic.Int64
	scrapes       atomic.Int64
	caches        bool
	told          int64  // tokens of another door's among the counters, per request
	names         string // of the counters, with %s for queries and hits
	block         int64  // tokens that a count stands for
	details       bool   // answers do say what was cached
}

func newSilentCache(t *testing.T) *silentCache {
	c := &silentCache{names: "vllm:prefix_cache_%s_total", block: 1}
	m := http.NewServeMux()
	m.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[{"id":"sim"}]}`) })
	m.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		c.scrapes.Add(1)
		fmt.Fprintf(w, "vllm:kv_cache_usage_perc 0\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"62500\"} 1\n")
		fmt.Fprintf(w, c.names+"{engine=\"0\"} %d.0\n", "queries", c.queries.Load()/c.block)
		fmt.Fprintf(w, c.names+"{engine=\"0\"} %d.0\n", "hits", c.hits.Load()/c.block)
	})
	var before atomic.Bool
	m.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		prompt := int64(len(body)) / 4
		c.queries.Add(prompt + c.told)
		if before.Swap(true) && c.caches {
			c.hits.Add(prompt)
		}
		c.hits.Add(c.told / 2)
		usage := map[string]any{"prompt_tokens": prompt, "completion_tokens": 1}
		if c.details {
			usage["prompt_tokens_details"] = map[string]int64{"cached_tokens": prompt}
		}
		json.NewEncoder(w).Encode(map[string]any{"id": "1", "choices": []any{map[string]any{"index": 0, "message": map[string]string{"content": "hi"}, "finish_reason": "stop"}}, "usage": usage})
	})
	c.Server = httptest.NewServer(m)
	t.Cleanup(c.Close)
	return c
}

// TestHitsFromCounters asks one worker for one prompt again and again. How much
// of it the door believes cached there follows the worker's counters where its
// answers say nothing, as far as they can be of this door's requests alone.
func TestHitsFromCounters(t *testing.T) {
	f := func(name string, change func(*silentCache), believed bool) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newSilentCache(t)
			change(c)
			r := newRig(t, nil, func(s *control.WorkerSet) {
				s.Pools[0].Workers = []control.Worker{{Name: "1", URL: c.URL, Generation: 1, Kind: "vllm", State: "ready"}}
				s.Pools[0].Scrape.Interval = 1 // as fast as can be
			})
			r.until("the worker is reached", func() bool { return r.door.State().Workers[0].Reached })
			body := fmt.Sprintf(`{"model":"sim","messages":[{"role":"user","content":%q}]}`, strings.Repeat("The same words once more. ", 700))
			share := func() float64 {
				resp, got := r.post("/v1/chat/completions", body)
				d, ok := r.door.Decision(resp.Header.Get("x-request-id"))
				if resp.StatusCode != 200 || !ok {
					t.Fatalf("status %d %s", resp.StatusCode, got)
				}
				return float64(d.Candidates[0].PrefixTokens) / float64(len(body)/4)
			}
			share()
			if !believed {
				r.until("it is believed less", func() bool { return share() < 0.3 })
				return
			}
			for range 3 {
				seen := c.scrapes.Load()
				r.until("the worker is scraped", func() bool { share(); return c.scrapes.Load() > seen })
			}
			if s := share(); s < 0.8 {
				t.Errorf("%.2f of a prompt that was sent again and again is believed cached", s)
			}
		})
	}
	f("caches nothing", func(*silentCache) {}, false)
	f("caches nothing, old names, blocks", func(c *silentCache) { c.names, c.block = "vllm:gpu_prefix_cache_%s", 16 }, false)
	f("counts nothing", func(c *silentCache) { c.names = "vllm:other_%s" }, true)
	f("caches", func(c *silentCache) { c.caches = true }, true)
	f("caches, old names, blocks", func(c *silentCache) { c.names, c.block, c.caches = "vllm:gpu_prefix_cache_%s", 16, true }, true)
	f("another door's hits among them", func(c *silentCache) { c.told = 20_000 }, true)
	f("its answers say more", func(c *silentCache) { c.details = true }, true)
}
