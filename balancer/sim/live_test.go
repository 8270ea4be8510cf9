package sim

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// In a long prefill no counter moves; with the first token all of the prompt is
// counted. KV is taken as it is computed.
func TestLiveCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLive(Speed{Base: 0.01, PerPrefill: 0.001, PerDecode: 0.001, Budget: 1000, Capacity: 16_000})
		ctx, cancel := context.WithCancel(t.Context())
		go l.run(ctx)
		defer cancel()
		counts := func() (prompt, said int64, running int, usage float64) {
			l.mu.Lock()
			defer l.mu.Unlock()
			running, _, usage = l.batch.Counts()
			return l.prompt, l.said, running, usage
		}
		s, tokens := l.add(4000, 3, nil)
		time.Sleep(3500 * time.Millisecond) // three of four steps
		synctest.Wait()
		if prompt, said, running, usage := counts(); prompt != 0 || said != 0 || running != 1 || usage != 0.25 {
			t.Errorf("in the prefill: %d and %d tokens counted, %d run, usage %g", prompt, said, running, usage)
		}
		<-tokens
		<-tokens
		synctest.Wait()
		if prompt, said, _, _ := counts(); prompt != 4000 || said != 2 {
			t.Errorf("after two tokens: %d and %d counted", prompt, said)
		}
		l.remove(s)
		if _, _, _, usage := counts(); usage != 0 {
			t.Errorf("after its end: usage %g", usage)
		}
	})
}

// A worker at a Speed serves answers over HTTP, and its metrics look as vLLM's do.
func TestLiveOverHTTP(t *testing.T) {
	w := New(Options{Speed: &Speed{Base: 0.0001, PerPrefill: 1e-6, Budget: 512, Capacity: 4096}, Words: 12})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	get := func() string {
		res, err := http.Get(w.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const prompt, said = `vllm:prompt_tokens_total{engine="0",model_name="sim"} `, `vllm:generation_tokens_total{engine="0",model_name="sim"} `
	if text := get(); !strings.Contains(text, prompt+"0.0\n") || !strings.Contains(text, said+"0.0\n") || !strings.Contains(text, `num_gpu_blocks="256"`) {
		t.Errorf("a fresh worker's metrics:\n%s", text)
	}
	res, err := http.Post(w.URL+"/v1/completions", "application/json", strings.NewReader(`{"model":"sim","prompt":"count","max_tokens":12,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(text), `"text":"11 "`) || !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
		t.Fatalf("%v: %s", err, text)
	}
	if text := get(); strings.Contains(text, prompt+"0.0\n") || !strings.Contains(text, said+"12.0\n") {
		t.Errorf("after an answer:\n%s", text)
	}
}

// A worker that keeps prompts computes what begins alike once, and counts it; what an
// answer's length is, its prompt may say, past all routers.
func TestLiveCaches(t *testing.T) {
	w := New(Options{Speed: &Speed{Base: 0.0001, PerPrefill: 1e-6, Budget: 512, Capacity: 4096}, Caches: true})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	text := strings.Repeat("the same words ", 40)
	for range 2 {
		res, err := http.Post(w.URL+"/v1/completions", "application/json", strings.NewReader(`{"model":"sim","prompt":"`+text+Words+`3","max_tokens":50,"stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.Contains(string(answer), `"text":"2 "`) || strings.Contains(string(answer), `"text":"3 "`) {
			t.Fatalf("%v; want three words: %s", err, answer)
		}
	}
	// 600 bytes are 150 tokens, nine blocks of which are full.
	if text := string(w.exposition()); !strings.Contains(text, `vllm:prefix_cache_hits_total{engine="0",model_name="sim"} 144.0`) {
		t.Errorf("metrics without the hits:\n%s", text)
	}
}
