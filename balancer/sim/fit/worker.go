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

// worker is a real worker on the demonstration model.
type worker struct {
	url      string
	cmd      *exec.Cmd
	capacity int64
	model    string
}

func start(ctx context.Context, program string) (*worker, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	l.Close()
	w := &worker{url: "http://" + addr}
	log := new(bytes.Buffer) // read once the worker has ended
	w.cmd = exec.CommandContext(ctx, program, "serve", "--host", "127.0.0.1", "--port", addr[strings.LastIndexByte(addr, ':')+1:], "--max-num-batched-tokens", strconv.Itoa(budget))
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

// answer is when a request was sent and when each of its tokens came.
type answer struct {
	sent time.Time
	at   []time.Time
}

// ask sends one completion of token ids and notes when its tokens come.
func (w *worker) ask(ctx context.Context, prompt []int, tokens int) (*answer, error) {
	body, err := json.Marshal(map[string]any{"model": w.model, "prompt": prompt, "max_tokens": tokens, "ignore_eos": true, "temperature": 0, "stream": true})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	a := &answer{sent: time.Now()}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, err := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("the worker answered %s: %s %w", resp.Status, b, err)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: {") {
			a.at = append(a.at, time.Now())
		}
	}
	if len(a.at) < 2 {
		return nil, fmt.Errorf("a request for %d tokens got %d events: %w", tokens, len(a.at), lines.Err())
	}
	return a, nil
}
