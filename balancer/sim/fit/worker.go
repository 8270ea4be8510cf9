package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// worker is a worker that runs, with the helpers that it started.
type worker struct {
	url string
	cmd *exec.Cmd
}

// patience is for a vLLM, which may take minutes to start.
const patience = 10 * time.Minute

// start starts a worker with further arguments and waits until it is ready.
func (c *command) start(ctx context.Context, args ...string) (*worker, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	args = append([]string{"--max-num-batched-tokens", strconv.Itoa(c.budget)}, args...)
	w := &worker{url: "http://127.0.0.1:" + port}
	if c.engine != "" {
		w.cmd = exec.CommandContext(ctx, "sh", "-c", "exec "+strings.NewReplacer("{port}", port, "{args}", strings.Join(args, " ")).Replace(c.engine))
	} else {
		w.cmd = exec.CommandContext(ctx, c.program, slices.Concat([]string{"serve", "--host", "127.0.0.1", "--port", port}, c.args, args)...)
	}
	log := new(bytes.Buffer) // read once the worker has ended
	w.cmd.Stdout, w.cmd.Stderr, w.cmd.WaitDelay = log, log, 10*time.Second
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && syscall.Kill(w.cmd.Process.Pid, 0) == nil; {
		if w.ready(ctx) {
			return w, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.stop()
	return nil, fmt.Errorf("%s did not become ready:\n%s", w.cmd, log)
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
	syscall.Kill(-w.cmd.Process.Pid, syscall.SIGKILL)
	w.cmd.Wait()
}
