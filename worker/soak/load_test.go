package soak

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/worker/workertest"
)

const (
	clients     = 8         // that send one request after the other
	cacheTokens = 256 * 128 // of the worker
)

// load is the traffic.
type load struct {
	url    string
	seed   uint64
	vocab  int32
	trace  []workertest.Length // empty: drawn
	client *http.Client

	sent, ended, aborted, tokens atomic.Int64
}

// length is that of request n: a recorded or a drawn one, an eighth of it.
func (l *load) length(n int64, rng *rand.Rand) workertest.Length {
	x := workertest.Lengths(rng)
	if len(l.trace) > 0 {
		x = l.trace[int(n)%len(l.trace)]
	}
	return workertest.Length{Prompt: max(1, x.Prompt/8), Answer: max(1, x.Answer/8)}
}

// run sends requests until the time is up and all have ended. It returns the
// first answer that was none.
func (l *load) run(d time.Duration) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := time.AfterFunc(d, cancel)
	defer stop.Stop()
	failed := make(chan error, clients)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := l.request(l.sent.Add(1)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// forms are what some of the answers must look like. They have few states, of
// which each is met in the warm-up: what a grammar learns of a state it keeps.
var forms = []string{
	`{"structured_outputs":{"regex":"[a-z]{2,6}"}}`,
	`{"structured_outputs":{"json":{"type":"object","properties":{"ok":{"type":"boolean"},"age":{"type":"integer","minimum":0,"maximum":99}},"required":["ok","age"],"additionalProperties":false},"disable_any_whitespace":true}}`,
	`{"structured_outputs":{"choice":["red","green","blue"]}}`,
}

// warm brings the worker to where only a leak makes it grow: every page of the
// cache is touched by prompts that have nothing in common; each form is filled
// in often, because the masks of its states are made when a text first reaches
// them; and more requests come at once than ever after, because the runtime
// keeps what it needs for as many goroutines as there ever were.
func (l *load) warm() error {
	if err := l.burst(8 * clients); err != nil {
		return err
	}
	for i := range cacheTokens/1400 + 1 {
		prompt := make([]int32, 1400)
		for k := range prompt {
			prompt[k] = int32(i*31+k*7) % l.vocab
		}
		if err := l.ask(map[string]any{"prompt": prompt, "max_tokens": 1}); err != nil {
			return err
		}
	}
	for i := range 60 * len(forms) {
		body := map[string]any{"prompt": []int{1, 2, 3}, "max_tokens": 96, "seed": i, "temperature": 1.5}
		if err := json.Unmarshal([]byte(forms[i%len(forms)]), &body); err != nil {
			return err
		}
		if err := l.ask(body); err != nil {
			return err
		}
	}
	return nil
}

// burst sends n requests at once.
func (l *load) burst(n int) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			errs[i] = l.ask(map[string]any{"prompt": []int{i, 2, 3}, "max_tokens": 24, "ignore_eos": true, "n": 2, "temperature": 1})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ask sends one completion and waits for its answer.
func (l *load) ask(body map[string]any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, l.url+"/v1/completions", bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	_, err = l.read(req, false)
	return err
}

// body is that of request n: random tokens, of which some begin alike.
func (l *load) body(n int64, rng *rand.Rand) (path string, body map[string]any) {
	length := l.length(n, rng)
	prompt := make([]int32, length.Prompt)
	shared := rng.IntN(2) == 0
	for i := range prompt {
		prompt[i] = rng.Int32N(l.vocab)
		if shared && i < 100 {
			prompt[i] = int32(i+int(n%4)*100) % l.vocab
		}
	}
	body = map[string]any{"prompt": prompt, "max_tokens": length.Answer, "ignore_eos": true, "seed": n, "stream": rng.IntN(4) > 0}
	switch n % 16 {
	case 3:
		body["n"] = 2
	case 5:
		body["logprobs"], body["presence_penalty"] = 3, 0.5
	case 7:
		body["stop"], body["temperature"] = []string{"\n\n", "zebra"}, 0.7
	case 9, 11, 13:
		_ = json.Unmarshal([]byte(forms[n%3]), &body)
		body["max_tokens"] = 64 + length.Answer
	case 15:
		delete(body, "prompt")
		body["messages"] = []map[string]string{{"role": "user", "content": fmt.Sprintf("Count from %d to %d by 1.", n%50, n%50+int64(length.Answer))}}
		return "/v1/chat/completions", body
	}
	return "/v1/completions", body
}

// request sends request n and reads its answer, or leaves in the middle of it:
// one in twenty does.
func (l *load) request(n int64) error {
	rng := rand.New(rand.NewPCG(l.seed, uint64(n)))
	path, body := l.body(n, rng)
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	leaves := rng.IntN(20) == 0
	if leaves {
		timer := time.AfterFunc(time.Duration(rng.IntN(100))*time.Millisecond, leave)
		defer timer.Stop()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	tokens, err := l.read(req, body["stream"] == true)
	switch {
	case ctx.Err() != nil:
		l.aborted.Add(1)
	case err != nil:
		return fmt.Errorf("seed %d, request %d: %w", l.seed, n, err)
	default:
		l.ended.Add(1)
		l.tokens.Add(int64(tokens))
	}
	return nil
}

// read reads an answer and counts its events.
func (l *load) read(req *http.Request, stream bool) (int, error) {
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return 0, fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	if !stream {
		var a struct {
			Usage struct {
				Completion int `json:"completion_tokens"`
			} `json:"usage"`
		}
		err := json.NewDecoder(resp.Body).Decode(&a)
		return a.Usage.Completion, err
	}
	events, last := 0, ""
	for scan := bufio.NewScanner(resp.Body); scan.Scan(); {
		if line, ok := strings.CutPrefix(scan.Text(), "data: "); ok {
			events, last = events+1, line
		}
	}
	if last != "[DONE]" && req.Context().Err() == nil {
		return events, fmt.Errorf("a stream of %d events ends with %q", events, last)
	}
	return events, nil
}
