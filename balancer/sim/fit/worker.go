package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// worker is a worker that runs.
type worker struct {
	url string
	cmd *exec.Cmd
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
		if w.ready(ctx) {
			return w, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.stop()
	return nil, fmt.Errorf("%s did not become ready:\n%s", program, log)
}

// ready reports whether the worker answers.
func (w *worker) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/health", nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

func (w *worker) stop() {
	w.cmd.Process.Signal(syscall.SIGKILL)
	w.cmd.Wait()
}
