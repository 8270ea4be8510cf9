package balancer_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// TestUnsaidUsageIsCharged lets a key of 2000 tokens a minute send prompts of about
// a thousand, whose answers never say what they took, or whose client leaves before
// they do: the third is refused.
func TestUnsaidUsageIsCharged(t *testing.T) {
	f := func(name string, leave bool) {
		t.Run(name, func(t *testing.T) {
			r := stubRig(t, func(s *control.WorkerSet) {
				s.Door.Keys = []configs.Key{{Name: "k", SHA256: []string{testKey}, TokensPerMinute: 2000}}
			}, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				flushed(w, oneEvent)
				if leave {
					<-r.Context().Done()
					return
				}
				io.WriteString(w, endEvents)
			})
			body := fmt.Sprintf(`{"model":"sim","stream":true,"n":2,"max_tokens":8,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("word", 1100))
			ask := func() int {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/chat/completions", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer test")
				resp, err := r.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if leave && resp.StatusCode == 200 {
					resp.Body.Read(make([]byte, 10))
					cancel()
				}
				io.Copy(io.Discard, resp.Body)
				r.until("its books are closed", func() bool { return len(r.door.Requests()) == 0 })
				return resp.StatusCode
			}
			if got := []int{ask(), ask(), ask()}; fmt.Sprint(got) != "[200 200 429]" {
				t.Errorf("got %v", got)
			}
		})
	}
	f("several choices", false)
	f("the client leaves", true)
}

// TestStoredIsItsKeys stores a response with one key, and asks for it with another,
// which is told no more than of one that is not there.
func TestStoredIsItsKeys(t *testing.T) {
	var reached atomic.Int64
	r := stubRig(t, func(s *control.WorkerSet) {
		s.Door.Keys = []configs.Key{{Name: "one", SHA256: []string{testKey}}, {Name: "two", SHA256: []string{secondKey}}}
	}, func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"resp_1","object":"response"}`)
	})
	if resp, got := r.post("/v1/responses", `{"model":"sim","input":"x"}`, "Authorization", "Bearer test"); resp.StatusCode != 200 {
		t.Fatalf("got %d %s", resp.StatusCode, got)
	}
	ask := func(key, id string) string {
		resp, got := r.post("/v1/responses/"+id+"/cancel", "", "Authorization", "Bearer "+key)
		return fmt.Sprint(resp.StatusCode, " ", strings.ReplaceAll(got, id, "ID"))
	}
	before := reached.Load()
	if other, none := ask("second", "resp_1"), ask("second", "resp_2"); other != none || !strings.HasPrefix(other, "404") {
		t.Errorf("another key's is told from none: %s\n%s", other, none)
	}
	if resp, got := r.post("/v1/responses", `{"model":"sim","input":"x","previous_response_id":"resp_1"}`, "Authorization", "Bearer second"); resp.StatusCode != 404 {
		t.Errorf("another key goes on from it: %d %s", resp.StatusCode, got)
	}
	if reached.Load() != before {
		t.Error("the worker was asked for another key's")
	}
	if own := ask("test", "resp_1"); !strings.HasPrefix(own, "200") {
		t.Errorf("its own key: %s", own)
	}
}

const secondKey = "16367aacb67a4a017c8da8ab95682ccb390863780f7114dda0a0e0c55644c7c4" // of "second"

// TestPreflight lets pages send whatever fields their client's library has.
func TestPreflight(t *testing.T) {
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{})}, func(s *control.WorkerSet) { s.Door.CORS.Origins = []string{"https://page"} })
	ask := func(fields string) string {
		req, err := http.NewRequest("OPTIONS", r.url+"/v1/chat/completions", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", "https://page")
		req.Header.Set("Access-Control-Request-Method", "POST")
		req.Header.Set("Access-Control-Request-Headers", fields)
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.Header.Get("Access-Control-Allow-Headers")
	}
	const sdk = "authorization,content-type,x-stainless-lang,x-stainless-retry-count,anthropic-version"
	if got := ask(sdk); got != sdk {
		t.Errorf("allowed are %q", got)
	}
	if got := ask("x-a; <script>"); !strings.Contains(got, "authorization") || strings.Contains(got, "script") {
		t.Errorf("allowed are %q", got)
	}
}

// TestWorkersAreAskedOnce has many ask for metrics: a worker's are read once for all
// of them.
func TestWorkersAreAskedOnce(t *testing.T) {
	var reads atomic.Int64
	r := foreignRig(t, map[string]string{"1": engine(t, &reads)})
	r.until("two in a row read the same", func() bool {
		one := r.metrics()
		at := strings.Index(one, "vllm:reads{")
		return at >= 0 && strings.Contains(r.metrics(), one[at:])
	})
}

// engine is one whose metrics say how often they were read.
func engine(t *testing.T, reads *atomic.Int64) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			io.WriteString(w, `{"data":[{"id":"sim"}]}`)
		case "/metrics":
			fmt.Fprintf(w, "# TYPE vllm:reads counter\nvllm:reads %d\n", reads.Add(1))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}
