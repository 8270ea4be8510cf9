//go:build vllm

package vllm

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"roundhouse/test/ports"
	"roundhouse/test/program"
	"roundhouse/test/vllm/kinds"
)

var folder = flag.String("vllm", "../../build/vllm", "where vLLM is installed")

var built program.Set

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	built.Remove()
	os.Exit(code)
}

// patience is how long anything may take: two servers start on few cores.
const patience = 10 * time.Minute

// system is a running `roundhouse up` with two vLLM servers.
type system struct {
	t           *testing.T
	cmd         *exec.Cmd
	log         string // a file
	Door, Admin string
}

// start runs two servers of a model behind a door.
func start(t *testing.T, model, pool string, flags ...string) *system {
	t.Helper()
	python, err := filepath.Abs(*folder)
	if err == nil {
		_, err = os.Stat(filepath.Join(python, "bin", "vllm"))
	}
	if err != nil {
		t.Fatalf("%v; `make test-vllm` installs it", err)
	}
	dir := t.TempDir()
	argv := append([]string{
		filepath.Join(python, "bin", "vllm"), "serve", model, "--served-model-name", kinds.Model, "--port", "$PORT",
		"--enforce-eager", "--max-model-len", "4096", "--max-num-batched-tokens", "1024", "--dtype", "bfloat16", "--max-num-seqs", "64",
		"--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--structured-outputs-config", `{"backend":"xgrammar","disable_any_whitespace":true}`,
	}, flags...)
	command, err := json.Marshal(argv)
	if err != nil {
		t.Fatal(err)
	}
	door, admin := ports.Address(t), ports.Address(t)
	config := filepath.Join(dir, "roundhouse.hcl")
	text := fmt.Sprintf(`state_dir = %q
door {
  listen = %q
  policy = "round_robin"
}
admin {
  listen = %q
}
pool "vllm" {
  driver      = "process"
  devices     = "cpu"
  workers     = 2
  command     = %s
  environment = {
    VLLM_CPU_KVCACHE_SPACE = "1", VLLM_CPU_OMP_THREADS_BIND = "nobind", OMP_NUM_THREADS = "1", HF_HUB_OFFLINE = "1", VLLM_NO_USAGE_STATS = "1"
  }
  %s
  rotation {
    drain_timeout = "3s"
    stop_grace    = "20s"
    ready_timeout = %q
  }
}
`, filepath.Join(dir, "state"), door, admin, strings.ReplaceAll(string(command), "${", "$${"), pool, patience)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &system{t: t, log: filepath.Join(dir, "log"), Door: "http://" + door, Admin: "http://" + admin}
	out, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s.cmd = exec.Command(built.Path(t, "roundhouse"), "up", "-c", config)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	s.ready()
	return s
}

// stop ends the system as an operator would.
func (s *system) stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(patience, func() { s.cmd.Process.Kill() })
	defer late.Stop()
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("roundhouse up ended with %v", err)
	}
	if s.t.Failed() {
		text, _ := os.ReadFile(s.log)
		s.t.Logf("roundhouse up printed:\n%s", text)
	}
}

// worker is what is read of GET /api/workers.
type worker struct {
	ID, State  string
	Generation int
	Place      struct{ PID int }
}

func (s *system) get(path string, into any) bool {
	res, err := http.Get(s.Admin + path)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == 200 && json.NewDecoder(res.Body).Decode(into) == nil
}

// workers asks for the workers; none where nobody answers.
func (s *system) workers() []worker {
	var list struct{ Workers []worker }
	s.get("/api/workers", &list)
	return list.Workers
}

// ready waits until both workers are.
func (s *system) ready() {
	s.t.Helper()
	s.until("both servers ready", func() bool {
		n := 0
		for _, w := range s.workers() {
			if w.State == "ready" {
				n++
			}
		}
		return n == 2
	})
}

// until asks for what only another process knows.
func (s *system) until(what string, ok func() bool) {
	s.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			text, _ := os.ReadFile(s.log)
			s.t.Fatalf("%s: not within %v; %+v\n%s", what, patience, s.workers(), text)
		}
	}
}

// post tells the admin API something.
func (s *system) post(path, body string) {
	s.t.Helper()
	res, err := http.Post(s.Admin+path, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		s.t.Fatalf("%s: status %d", path, res.StatusCode)
	}
}
