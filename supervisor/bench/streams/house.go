package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"roundhouse/balancer/control/phase"
	"roundhouse/test/ports"
)

// house is a running `roundhouse up` with workers of its own.
type house struct {
	dir   string
	image string // "": processes
	door  string
	admin string
	ports []func() // give them back
	up    *exec.Cmd
	log   bytes.Buffer
}

// start builds the programs and brings everything up.
func start(ctx context.Context, o options) (*house, error) {
	dir, err := os.MkdirTemp("", "roundhouse-bench-")
	if err != nil {
		return nil, err
	}
	h := &house{dir: dir}
	if err := h.begin(ctx, o); err != nil {
		h.stop()
		return nil, fmt.Errorf("%w\n%s", err, h.log.String())
	}
	return h, nil
}

func (h *house) begin(ctx context.Context, o options) error {
	if out, err := tool("go", "build", "-tags", "noxpu", "-o", h.dir, "roundhouse/cmd/..."); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	if o.driver == "docker" {
		h.image = fmt.Sprintf("roundhouse-bench:%d", os.Getpid())
		if err := h.pack(); err != nil {
			return err
		}
	}
	for _, address := range []*string{&h.door, &h.admin} {
		port, giveBack, err := ports.Lend()
		if err != nil {
			return err
		}
		h.ports = append(h.ports, giveBack)
		*address = fmt.Sprintf("127.0.0.1:%d", port)
	}
	where, how := "", ""
	if h.image != "" {
		where = fmt.Sprintf("driver = \"docker\"\n  image = %q\n  pull_policy = \"never\"", h.image)
		if !o.surge { // which shows ports that the engine publishes
			where += "\n  network_mode = \"host\""
		}
	}
	if o.surge {
		how = fmt.Sprintf("strategy = \"surge\"\n    min_ready = %d", o.workers)
	}
	args := fmt.Sprintf("\"--max-num-seqs\", \"%d\"", o.room)
	if o.pace > 0 {
		args += fmt.Sprintf(", \"--pace\", %q", o.pace)
	}
	text := fmt.Sprintf(`
state_dir = %q
door {
  listen     = %q
  slow_start = "1s"
}
admin {
  listen = %q
}
pool "chat" {
  %s
  workers = %d
  devices = "cpu"
  engine {
    served_model_name = ["roundhouse-demo"]
    args              = [%s]
  }
  rotation {
    drain_timeout = "60s"
    stop_grace    = "10s"
    %s
  }
}
`, filepath.Join(h.dir, "state"), h.door, h.admin, where, o.workers, args, how)
	file := filepath.Join(h.dir, "roundhouse.hcl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	h.up = exec.Command(filepath.Join(h.dir, "roundhouse"), "up", "-c", file)
	h.up.Stdout, h.up.Stderr = &h.log, &h.log
	if err := h.up.Start(); err != nil {
		return err
	}
	return h.ready(ctx, o.workers)
}

// ready waits until n workers are.
func (h *house) ready(ctx context.Context, n int) error {
	late, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		if h.readyNow(late) == n {
			return nil
		}
		select {
		case <-late.Done():
			return errors.New("not every worker is ready within five minutes")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// readyNow is how many workers are ready; -1: nobody tells.
func (h *house) readyNow(ctx context.Context) (n int) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.admin+"/api/workers", nil)
	if err != nil {
		return -1
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return -1
	}
	defer res.Body.Close()
	var v struct{ Workers []struct{ State phase.Phase } }
	if json.NewDecoder(res.Body).Decode(&v) != nil {
		return -1
	}
	for _, w := range v.Workers {
		if w.State == phase.Ready {
			n++
		}
	}
	return n
}

// roundhouse runs an operator command.
func (h *house) roundhouse(args ...string) (string, error) {
	return tool(filepath.Join(h.dir, "roundhouse"), append(args, "--admin", h.admin)...)
}

// stop ends everything and leaves nothing.
func (h *house) stop() {
	if h.up != nil && h.up.Process != nil {
		_ = h.up.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = h.up.Wait()
	}
	if h.image != "" {
		if ids, err := tool("docker", "ps", "--all", "--quiet", "--filter", "ancestor="+h.image); err == nil {
			for id := range strings.FieldsSeq(ids) {
				_, _ = tool("docker", "rm", "--force", id)
			}
		}
		_, _ = tool("docker", "rmi", "--force", h.image)
	}
	for _, giveBack := range h.ports {
		giveBack()
	}
	os.RemoveAll(h.dir)
}

// pack makes an image of the worker alone.
func (h *house) pack() error {
	program, err := os.ReadFile(filepath.Join(h.dir, "roundhouse-worker"))
	if err != nil {
		return err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: "roundhouse-worker", Mode: 0o755, Size: int64(len(program))}); err != nil {
		return err
	}
	if _, err := w.Write(program); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	load := exec.Command("docker", "import", "--change", `ENTRYPOINT ["/roundhouse-worker","serve"]`, "-", h.image)
	load.Stdin = &layer
	if out, err := load.CombinedOutput(); err != nil {
		return fmt.Errorf("docker import: %w\n%s", err, out)
	}
	return nil
}

// tool runs a program, without cgo where it builds.
func tool(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
