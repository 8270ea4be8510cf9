package fitted

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"roundhouse/worker/api"
)

// worker is a real worker.
type worker struct {
	url, key string
	capacity int64
	model    string
	longest  int // context
	ours     bool
}

// meet learns what a worker is: its model, and of ours its status too, which a vLLM
// does not have.
func meet(ctx context.Context, url, key string) (*worker, error) {
	w := &worker{url: strings.TrimRight(url, "/"), key: key}
	res, err := w.get(ctx, "/v1/models")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			Longest int    `json:"max_model_len"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 16<<20)).Decode(&list); err != nil || len(list.Data) == 0 {
		return nil, fmt.Errorf("%s/v1/models answers %s and no list of models", w.url, res.Status)
	}
	w.model, w.longest = list.Data[0].ID, list.Data[0].Longest
	status, err := w.get(ctx, api.StatusPath)
	if err != nil {
		return nil, err
	}
	defer status.Body.Close()
	var ours api.Status
	if status.StatusCode == http.StatusOK && json.NewDecoder(status.Body).Decode(&ours) == nil && ours.Protocol != 0 {
		w.ours, w.capacity = true, ours.CapacityTokens
		return w, nil
	}
	w.capacity, err = w.blocks(ctx)
	return w, err
}

func (w *worker) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+path, nil)
	if err != nil {
		return nil, err
	}
	w.authorize(req)
	return http.DefaultClient.Do(req)
}

func (w *worker) authorize(req *http.Request) {
	if w.key != "" {
		req.Header.Set("Authorization", "Bearer "+w.key)
	}
}

// blocks is the KV cache of a vLLM in tokens, as its metrics have it.
func (w *worker) blocks(ctx context.Context) (int64, error) {
	res, err := w.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, "vllm:cache_config_info{") {
			size, err1 := strconv.ParseInt(label(line, "block_size"), 10, 64)
			n, err2 := strconv.ParseInt(label(line, "num_gpu_blocks"), 10, 64)
			if err1 == nil && err2 == nil {
				return size * n, nil
			}
		}
	}
	return 0, fmt.Errorf("%s/metrics does not say how large the KV cache is (vllm:cache_config_info)", w.url)
}

// label is the value of a label in a line of an exposition.
func label(line, name string) string {
	for _, before := range []string{"{", ","} {
		if _, rest, found := strings.Cut(line, before+name+`="`); found {
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
	}
	return ""
}

// clock is a sum of seconds and how many times were added to it, as the worker
// itself keeps them.
type clock struct{ sum, count float64 }

// clocks reads histograms of the worker's metrics by name.
func (w *worker) clocks(ctx context.Context, names ...string) ([]clock, error) {
	resp, err := w.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := make([]clock, len(names))
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, rest, labelled := strings.Cut(lines.Text(), "{")
		_, value, valued := strings.Cut(rest, "} ")
		if !labelled || !valued {
			continue
		}
		for i, n := range names {
			into := &out[i].sum
			if name == n+"_count" {
				into = &out[i].count
			} else if name != n+"_sum" {
				continue
			}
			if *into, err = strconv.ParseFloat(value, 64); err != nil {
				return nil, fmt.Errorf("%s: %w", lines.Text(), err)
			}
		}
	}
	return out, lines.Err()
}

// stream is one answer under way.
type stream struct {
	sent  time.Time
	first chan time.Time // when its first token came
	last  time.Time      // when its last event came; read it when ended is closed
	err   error          // read it when ended is closed
	ended chan struct{}
}

// ask sends one completion of token ids.
func (w *worker) ask(ctx context.Context, prompt []int, tokens int) *stream {
	s := &stream{sent: time.Now(), first: make(chan time.Time, 1), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.err = w.read(ctx, s, prompt, tokens)
		close(s.first)
	}()
	return s
}

func (w *worker) read(ctx context.Context, s *stream, prompt []int, tokens int) error {
	body, err := json.Marshal(map[string]any{"model": w.model, "prompt": prompt, "max_tokens": tokens, "ignore_eos": true, "temperature": 0, "stream": true})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	w.authorize(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, err := io.ReadAll(resp.Body)
		return fmt.Errorf("the worker answered %s: %s %w", resp.Status, b, err)
	}
	lines, began := bufio.NewScanner(resp.Body), false
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: {") {
			if s.last = time.Now(); !began {
				began = true
				s.first <- s.last
			}
		}
	}
	if !began {
		return fmt.Errorf("a request for %d tokens got none: %w", tokens, lines.Err())
	}
	return lines.Err()
}
