package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"roundhouse/worker"
	"roundhouse/worker/api"
	"roundhouse/worker/server"
)

// TestSeedOfTheWorker holds that with a seed of its own a worker gives the same
// answers after every start, and different ones within a run.
func TestSeedOfTheWorker(t *testing.T) {
	answers := func(seed *uint64) []string {
		r := newRig(t, func(s *server.Config, _ *worker.Config) { s.Seed = seed })
		var out []string
		for range 3 {
			out = append(out, text(r.ask(texts, object{"prompt": "a", "max_tokens": 8, "return_token_ids": true})["choices"].([]any)[0].(object)["token_ids"]))
		}
		return out
	}
	a, b, c := answers(new(uint64(7))), answers(new(uint64(7))), answers(new(uint64(8)))
	if fmt.Sprint(a) != fmt.Sprint(b) || a[0] == a[1] || fmt.Sprint(a) == fmt.Sprint(c) {
		t.Errorf("seed 7: %v, again %v; seed 8: %v", a, b, c)
	}
	if d, e := answers(nil), answers(nil); fmt.Sprint(d) == fmt.Sprint(e) {
		t.Errorf("without a seed, twice: %v", d)
	}
}

// locked is a buffer that several goroutines write to.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestWorkerWideOptions holds what is set once for all requests: who speaks,
// tokens shown as ids, and a line of the log for each request with nothing of
// its text.
func TestWorkerWideOptions(t *testing.T) {
	var log locked
	r := newRig(t, func(s *server.Config, _ *worker.Config) {
		s.Role, s.TokensAsIDs, s.LogRequests, s.Log = "helper", true, true, slog.New(slog.NewTextHandler(&log, nil))
	})
	body := object{"messages": []object{{"role": "user", "content": "canary-31337"}}, "max_tokens": 3, "logprobs": true, "ignore_eos": true}
	c := r.ask(chats, body)["choices"].([]any)[0].(object)
	if c["message"].(object)["role"] != "helper" || !strings.HasPrefix(c["logprobs"].(object)["content"].([]any)[0].(object)["token"].(string), "token_id:") {
		t.Errorf("got %s", text(c))
	}
	if first := r.stream(chats, body)[0]; !strings.Contains(text(first), `"role":"helper"`) {
		t.Errorf("streamed: %s", text(first))
	}
	r.get("/health")
	if out := log.String(); strings.Count(out, "msg=request method=POST path=/v1/chat/completions status=200") != 2 || strings.Contains(out, "canary") {
		t.Errorf("the log: %s", out)
	}
}

// TestSpeculationIsCounted holds vLLM's metrics of speculation, and that they
// are absent without it.
func TestSpeculationIsCounted(t *testing.T) {
	names := []string{"num_drafts_total", "num_draft_tokens_total", "num_accepted_tokens_total", "num_accepted_tokens_per_pos_total"}
	for _, tokens := range []int{0, 3} {
		r := newRig(t, func(_ *server.Config, w *worker.Config) { w.NGram = worker.NGram{Tokens: tokens, Max: 4, Min: 1} })
		r.ask(texts, object{"prompt": strings.Repeat("one two three ", 20), "max_tokens": 40, "temperature": 0, "ignore_eos": true})
		_, text := r.get("/metrics")
		for _, name := range names {
			if has := strings.Contains(text, "\nvllm:spec_decode_"+name+"{"); has != (tokens > 0) {
				t.Errorf("with %d guesses a step: vllm:spec_decode_%s is there: %v", tokens, name, has)
			}
		}
		if tokens > 0 && strings.Contains(text, `vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 0.0`) {
			t.Error("no draft is counted")
		}
	}
}

// TestWaitedAtTheDoor lets a long prompt and a short one wait for the one place
// of a worker: the short one goes first, unless a door says that the long one
// has waited before. Who names no door is not believed. Whoever is to go first
// comes first, so that the order holds however long the other takes to come, and
// a stream's first byte says who has the place.
func TestWaitedAtTheDoor(t *testing.T) {
	f := func(name, door, first, second string) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(_ *server.Config, e *worker.Config) { e.Limits.Seqs, e.Pace = 1, 20*time.Millisecond })
			ctx, leave := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer leave()
			began := make(chan string, 4)
			send := func(ctx context.Context, name string, words, most int, fields ...string) {
				body := fmt.Sprintf(`{"prompt":%q,"max_tokens":%d,"ignore_eos":true,"stream":true}`, strings.Repeat("one ", words), most)
				req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/completions", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Content-Type", "application/json")
				for i := 0; i < len(fields); i += 2 {
					req.Header.Set(fields[i], fields[i+1])
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					return // hung up
				}
				if resp.StatusCode != http.StatusOK {
					t.Errorf("%s: %s", name, resp.Status)
				}
				if _, err := resp.Body.Read(make([]byte, 1)); err == nil {
					began <- name
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			come := map[string]func(){
				"long":  func() { send(ctx, "long", 180, 100, door, "door-1", api.HeaderWaited, "60000") },
				"short": func() { send(ctx, "short", 2, 100) },
			}
			send(ctx, "earlier", 3, 24) // steps by which who waits can age
			<-began
			fillers, end := context.WithCancel(ctx)
			defer end()
			wg.Go(func() { send(fillers, "filler", 3, 480) })
			<-began
			for i, name := range []string{first, second} {
				wg.Go(come[name])
				for s := r.engine.Stats(); s.Running != 1 || s.Waiting != i+1; s = r.engine.Stats() {
					if s.Finished[worker.FinishLength] > 1 {
						t.Fatalf("the filler has ended, and %d wait", s.Waiting)
					}
					<-time.After(time.Millisecond)
				}
			}
			end()
			if got := <-began; got != first {
				t.Errorf("%s goes first; want %s", got, first)
			}
		})
	}
	f("a door says so", api.HeaderDoor, "long", "short")
	f("somebody says so", "X-Nobody", "short", "long")
}
