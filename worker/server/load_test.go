package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestBenchServe sends what `vllm bench serve` sends, by both of its request
// functions, 40 at a time, and reads the answers as it does: every request has
// a first token, as many tokens as were asked for by the account that ends the
// stream, and nothing that its parser would trip over.
func TestBenchServe(t *testing.T) {
	r := newRig(t, nil)
	rng := rand.New(rand.NewPCG(1, 7))
	var wg sync.WaitGroup
	for i := range 80 {
		input, output := 1+rng.IntN(200), 1+rng.IntN(60)
		words := strings.TrimSpace(strings.Repeat("one ", input))
		path, body := texts, object{"model": "m", "prompt": words, "temperature": 0.0, "repetition_penalty": 1.0, "max_tokens": output, "logprobs": nil}
		if i%2 == 1 {
			path = chats
			body = object{"model": "m", "messages": []object{{"role": "user", "content": []object{{"type": "text", "text": words}}}}, "temperature": 0.0, "max_completion_tokens": output}
		}
		body = with(body, "stream", true, "stream_options", object{"include_usage": true}, "ignore_eos", true)
		if i == 40 {
			wg.Wait()
		}
		wg.Go(func() {
			if err := benchRequest(r.url+path, body, output); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if _, text := r.get("/metrics"); !strings.Contains(text, `vllm:request_success_total{engine="0",model_name="m",finished_reason="length"} 80.0`) {
		t.Error("the metrics do not count 80 ends by length")
	}
}

// benchRequest is one request as the program sends and reads it.
func benchRequest(url string, body object, output int) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(string(data)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer none")
	req.Header.Set("x-request-id", "bench-0a1b2c3d-7")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	deltas, done, counted := 0, false, -1
	for scan := bufio.NewScanner(resp.Body); scan.Scan(); {
		line := strings.TrimSpace(scan.Text())
		if line == "" {
			continue
		}
		chunk, ok := strings.CutPrefix(line, "data: ")
		if !ok || done {
			return fmt.Errorf("a line %q", line)
		}
		if chunk == "[DONE]" {
			done = true
			continue
		}
		var e struct {
			Choices []map[string]any `json:"choices"`
			Usage   *struct {
				Completion int `json:"completion_tokens"`
			} `json:"usage"`
		}
		if err := json.Unmarshal([]byte(chunk), &e); err != nil {
			return fmt.Errorf("%q: %w", chunk, err)
		}
		switch {
		case len(e.Choices) > 0:
			deltas++
		case e.Usage != nil:
			counted = e.Usage.Completion
		default:
			return fmt.Errorf("neither choices nor usage: %s", chunk)
		}
	}
	if !done || deltas == 0 || counted != output {
		return fmt.Errorf("done %v, %d deltas, %d tokens counted of %d", done, deltas, counted, output)
	}
	return nil
}
