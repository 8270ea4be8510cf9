package balancer_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// TestEstimateRefusesNobody sends what the door must take for far longer than any
// context, and is not: the worker, which alone knows, answers.
func TestEstimateRefusesNobody(t *testing.T) {
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Context: 2048}), sim.New(sim.Options{Context: 1024, Own: true})}, nil)
	texts, err := json.Marshal(strings.Split(strings.Repeat(strings.Repeat("some words ", 180)+"\n", 100), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	picture := base64.StdEncoding.EncodeToString(make([]byte, 150_000))
	f := func(name, path, body string) {
		t.Run(name, func(t *testing.T) {
			if resp, got := r.post(path, body); resp.StatusCode != 200 {
				t.Errorf("status %d: %.300s", resp.StatusCode, got)
			}
		})
	}
	f("a batch of texts", "/v1/embeddings", fmt.Sprintf(`{"model":"sim","input":%s}`, texts))
	f("documents to rank", "/v1/rerank", fmt.Sprintf(`{"model":"sim","query":"which","documents":%s}`, texts))
	f("a list of prompts", "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":%s,"max_tokens":4}`, texts))
	f("one text of spaces", "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":%q,"max_tokens":4}`, strings.Repeat(" ", 100_000)))
	f("a picture", "/v1/chat/completions", fmt.Sprintf(
		`{"model":"sim","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}},{"type":"text","text":"what is this"}]}]}`, picture))
}

// TestMediaChargesNoText lets a key that may use few tokens a minute send large
// pieces of sound: their bytes are not taken from it.
func TestMediaChargesNoText(t *testing.T) {
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/v1/models":
			io.WriteString(w, `{"data":[{"id":"sim","max_model_len":8192}]}`)
		case "/v1/chat/completions":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"choices":[{"message":{"content":"a cat"}}],"usage":{"prompt_tokens":600,"completion_tokens":2,"total_tokens":602}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer engine.Close()
	r := foreignRig(t, map[string]string{"1": engine.URL})
	hash := "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of "test"
	r.set.Version, r.set.Door.Keys = 2, []configs.Key{{Name: "k", SHA256: []string{hash}, TokensPerMinute: 6000}}
	if _, err := r.door.Apply(r.set); err != nil {
		t.Fatal(err)
	}
	r.until("the model is known", func() bool { return len(r.door.State().Workers[0].Models) > 0 })
	picture := base64.StdEncoding.EncodeToString(make([]byte, 150_000))
	body := fmt.Sprintf(`{"model":"sim","max_tokens":8,"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":%q,"format":"wav"}},{"type":"text","text":"what is this"}]}]}`, picture)
	for i := range 8 {
		if resp, got := r.post("/v1/chat/completions", body, "Authorization", "Bearer test"); resp.StatusCode != 200 {
			t.Fatalf("request %d, of 600 tokens of 6000 a minute: status %d: %s", i, resp.StatusCode, got)
		}
	}
}

// TestLongerContextFirst keeps a prompt that seems too long for a worker from it as
// long as one with a longer context is there, however busy.
func TestLongerContextFirst(t *testing.T) {
	short, long := sim.New(sim.Options{Context: 1024}), sim.New(sim.Options{Context: 32_000})
	r := newRig(t, []*sim.Worker{short, long}, nil)
	r.until("both contexts are known", func() bool {
		return !slices.ContainsFunc(r.door.State().Workers, func(w control.WorkerState) bool { return len(w.Models) == 0 || w.KV.ReportAgeSeconds == nil })
	})
	body := fmt.Sprintf(`{"model":"sim","max_tokens":4,"prompt":%q}`, strings.Repeat("some words ", 3000))
	for range 6 {
		if resp, _ := r.post("/v1/completions", body); resp.Header.Get("x-roundhouse-worker") != "p/2" {
			t.Fatalf("went to %s", resp.Header.Get("x-roundhouse-worker"))
		}
	}
	r.reset(func(w []control.Worker) { w[1].State = "draining" })
	if resp, got := r.post("/v1/completions", body); resp.Header.Get("x-roundhouse-worker") != "p/1" {
		t.Errorf("with no longer context to be had: status %d: %s", resp.StatusCode, got)
	}
}
