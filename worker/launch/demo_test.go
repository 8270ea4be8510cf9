package launch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// demoServer serves the demonstration model by HTTP.
func demoServer(t *testing.T, args ...string) *httptest.Server {
	t.Helper()
	o, err := ParseServe(args, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	return serveOpen(t, o, quiet)
}

// serveOpen serves what options name by HTTP, until the test ends.
func serveOpen(t *testing.T, o Options, log *slog.Logger) *httptest.Server {
	t.Helper()
	_, hs := workerOpen(t, o, log)
	return hs
}

// workerOpen is serveOpen for who looks into the worker.
func workerOpen(t *testing.T, o Options, log *slog.Logger) (*Worker, *httptest.Server) {
	t.Helper()
	w, err := Open(o, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	hs := httptest.NewServer(w.Server)
	t.Cleanup(func() {
		hs.CloseClientConnections()
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		hs.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, hs
}

func postJSON(url string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(data))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d, %w: %s", resp.StatusCode, err, text)
	}
	return json.Unmarshal(text, answer)
}

type question struct{ Kind, Question, Answer string }

func questions(t *testing.T) []question {
	t.Helper()
	f, err := os.Open("../demo/testdata/questions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var list []question
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var q question
		if err := json.Unmarshal(scan.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		list = append(list, q)
	}
	return list
}

type goldenPrompt struct {
	Name   string    `json:"name"`
	IDs    []int32   `json:"ids"`
	Greedy []int32   `json:"greedy"`
	Gap    []float64 `json:"greedy_gap"`
}

func golden(t *testing.T) []goldenPrompt {
	t.Helper()
	f, err := os.Open("../demo/testdata/golden.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Prompts []goldenPrompt `json:"prompts"`
	}
	if err := json.NewDecoder(z).Decode(&g); err != nil {
		t.Fatal(err)
	}
	return g.Prompts
}

// TestGoldenTokens compares greedy tokens with those of transformers. Where
// the two best logits are as good as equal there, another order of sums may
// choose otherwise, and the comparison ends.
func TestGoldenTokens(t *testing.T) { goldenTokens(t, "--dtype", "float32") }

func goldenTokens(t *testing.T, args ...string) {
	t.Helper()
	const near = 1e-3
	hs := demoServer(t, args...)
	for _, g := range golden(t) {
		var a struct {
			Choices []struct {
				IDs []int32 `json:"token_ids"`
			}
		}
		body := map[string]any{"prompt": g.IDs, "temperature": 0, "max_tokens": len(g.Greedy), "ignore_eos": true, "return_token_ids": true}
		if err := postJSON(hs.URL+"/v1/completions", body, &a); err != nil {
			t.Fatal(err)
		}
		n := len(g.Greedy)
		if i := slices.IndexFunc(g.Gap, func(gap float64) bool { return gap < near }); i >= 0 {
			n = i
		}
		if got := a.Choices[0].IDs; len(got) != len(g.Greedy) || !slices.Equal(got[:n], g.Greedy[:n]) {
			t.Errorf("%s:\n got %v\nwant %v", g.Name, got, g.Greedy[:n])
		}
	}
}

// TestSameTokensOfTheModel holds on the real model that a request gives the
// same tokens alone and in a batch of 64, with and without a cache hit.
func TestSameTokensOfTheModel(t *testing.T) {
	sameTokens(t, 64, "--max-num-seqs", "64", "--max-num-batched-tokens", "96")
}

func sameTokens(t *testing.T, n int, args ...string) {
	t.Helper()
	hs := demoServer(t, args...)
	list := questions(t)
	var picked []question
	for i := 0; i < len(list) && len(picked) < n; i += len(list) / n {
		picked = append(picked, list[i])
	}
	ask := func(i int) string {
		var a struct {
			Choices []struct {
				IDs []int32 `json:"token_ids"`
			}
		}
		body := map[string]any{
			"messages": []map[string]string{{"role": "user", "content": picked[i].Question}}, "temperature": []float64{0, 0.9}[i%2],
			"seed": i, "max_tokens": 24, "return_token_ids": true,
		}
		if err := postJSON(hs.URL+"/v1/chat/completions", body, &a); err != nil {
			return err.Error()
		}
		return fmt.Sprint(a.Choices[0].IDs)
	}
	alone := make([]string, len(picked))
	for i := range picked {
		alone[i] = ask(i)
	}
	together := make([]string, len(picked))
	var wg sync.WaitGroup
	for i := range picked {
		wg.Go(func() { together[i] = ask(i) })
	}
	wg.Wait()
	for i := range picked {
		if alone[i] != together[i] || !strings.HasPrefix(alone[i], "[") {
			t.Errorf("question %d: alone %s, in a batch %s", i, alone[i], together[i])
		}
	}
}
