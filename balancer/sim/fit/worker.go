package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"roundhouse/worker/api"
)

// worker is a real worker.
type worker struct {
	url      string
	cmd      *exec.Cmd
	capacity int64
	model    string
}

// start starts a worker with further arguments and waits until it is ready.
func start(ctx context.Context, program string, args ...string) (*worker, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	l.Close()
	w := &worker{url: "http://" + addr}
	log := new(bytes.Buffer) // read once the worker has ended
	args = append([]string{"serve", "--host", "127.0.0.1", "--port", addr[strings.LastIndexByte(addr, ':')+1:], "--max-num-batched-tokens", strconv.Itoa(budget)}, args...)
	w.cmd = exec.CommandContext(ctx, program, args...)
	w.cmd.Stderr = log
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	for range 300 {
		if w.learn(ctx) == nil {
			return w, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.stop()
	return nil, fmt.Errorf("%s did not become ready:\n%s", program, log)
}

// learn reads the first line of the worker's status.
func (w *worker) learn(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+api.StatusPath, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var s api.Status
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return err
	}
	w.capacity, w.model = s.CapacityTokens, s.Models[0]
	return nil
}

func (w *worker) stop() {
	w.cmd.Process.Signal(syscall.SIGKILL)
	w.cmd.Wait()
}

// clock is a sum of seconds and how many times were added to it, as the worker
// itself keeps them.
type clock struct{ sum, count float64 }

// clocks reads histograms of the worker's metrics by name.
func (w *worker) clocks(ctx context.Context, names ...string) ([]clock, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
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
		if !began && strings.HasPrefix(lines.Text(), "data: {") {
			began = true
			s.first <- time.Now()
		}
	}
	if !began {
		return fmt.Errorf("a request for %d tokens got none: %w", tokens, lines.Err())
	}
	return lines.Err()
}
