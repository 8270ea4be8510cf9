package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"roundhouse/test/counting"
	"roundhouse/test/ports"
	"roundhouse/test/program"
)

// built are the two programs.
var built program.Set

func TestMain(m *testing.M) {
	code := m.Run()
	built.Remove()
	os.Exit(code)
}

// patience is how long a test waits for what must come, on a machine that does
// much else; a test of several such things has all of testTime.
const (
	patience = 5 * time.Minute
	testTime = 10 * time.Minute
)

// system is a running `roundhouse up`.
type system struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   *output
	Door  string // http://host:port
	Admin string
	token string // of the admin API, if it has one
}

// output collects what a program prints, for waiting and for failures.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
	new chan struct{} // closed at each write
}

func newOutput() *output { return &output{new: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.new)
	o.new = make(chan struct{})
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// wait returns once ok holds of all that was printed, or fails the test.
func (o *output) wait(t *testing.T, what string, ok func(string) bool) {
	t.Helper()
	late := time.After(patience)
	for {
		o.mu.Lock()
		text, more := o.buf.String(), o.new
		o.mu.Unlock()
		if ok(text) {
			return
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("%s: not within %v; printed so far:\n%s", what, patience, text)
		}
	}
}

// writeConfig writes a configuration of its own ports and state into a folder
// of the test's own. pool is the pool blocks.
func writeConfig(t *testing.T, pool string) (path, door, admin string) {
	t.Helper()
	dir := t.TempDir()
	door, admin = ports.Address(t), ports.Address(t)
	path = filepath.Join(dir, "roundhouse.hcl")
	text := fmt.Sprintf("state_dir = %q\n\ndoor {\n  listen = %q\n}\n\nadmin {\n  listen = %q\n}\n\n%s\n",
		filepath.Join(dir, "state"), door, admin, pool)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, door, admin
}

// twoWorkers is the quick start's pool. Each %s takes further engine arguments.
const twoWorkers = `
pool "chat" {
  driver  = "process"
  devices = "cpu"
  workers = 2
  engine {
    served_model_name = ["roundhouse-demo"]
    args              = [%s]
  }
  rotation {
    drain_timeout = "60s"
    stop_grace    = "10s"
  }
}
`

// start runs `roundhouse up` on the given pools and waits until all is ready.
func start(t *testing.T, pool string) *system {
	t.Helper()
	path, door, admin := writeConfig(t, pool)
	return startAt(t, path, door, admin)
}

// startAt runs `roundhouse up` on a file, which the test may change later.
func startAt(t *testing.T, path, door, admin string) *system {
	t.Helper()
	return startWith(t, "", path, door, admin)
}

// startWith is startAt for an admin API with a token.
func startWith(t *testing.T, token, path, door, admin string) *system {
	t.Helper()
	s := &system{t: t, out: newOutput(), Door: "http://" + door, Admin: "http://" + admin, token: token}
	s.cmd = exec.Command(built.Path(t, "roundhouse"), "up", "-c", path)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	s.waitReady()
	return s
}

// stop ends the system as an operator would, and fails the test if it does not end.
func (s *system) stop() {
	if s.cmd.ProcessState != nil {
		return
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			s.t.Errorf("roundhouse up ended with %v; printed:\n%s", err, s.out)
		}
	case <-time.After(patience):
		s.cmd.Process.Kill()
		<-ended
		s.t.Errorf("roundhouse up did not end after SIGTERM; printed:\n%s", s.out)
	}
	if s.t.Failed() {
		s.t.Logf("roundhouse up printed:\n%s", s.out)
	}
}

// worker is what the tests read of GET /api/workers.
type worker struct {
	URL        string
	ID         string
	State      string
	Generation int
	Restarts   int
	Place      struct{ PID int }
}

// workers asks the admin API. An empty list means that it did not answer.
func (s *system) workers() []worker {
	var list struct{ Workers []worker }
	if json.Unmarshal([]byte(s.asked("/api/workers")), &list) != nil {
		return nil
	}
	return list.Workers
}

// asked is what the admin API answers; empty: nothing.
func (s *system) asked(path string) string {
	req, err := http.NewRequest("GET", s.Admin+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// known is workers once the admin API has answered.
func (s *system) known() (list []worker) {
	s.t.Helper()
	poll(s.t, "the admin API answers", func() bool { list = s.workers(); return len(list) > 0 }, s.out.String)
	return list
}

// waitReady polls the admin API until every worker is ready.
func (s *system) waitReady() {
	s.t.Helper()
	poll(s.t, "all workers ready", func() bool {
		ws := s.workers()
		for _, w := range ws {
			if w.State != "ready" {
				return false
			}
		}
		return len(ws) > 0
	}, func() string { return fmt.Sprintf("workers: %+v\nprinted:\n%s", s.workers(), s.out) })
}

// poll asks until ok holds. It is for what only another process knows.
func poll(t *testing.T, what string, ok func() bool, why func() string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within %v; %s", what, patience, why())
		}
	}
}

// post sends JSON and returns the status and the body.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// count asks the door to count from a to b and checks every byte of the stream.
func count(ctx context.Context, door string, a, b int) error {
	_, err := counting.Count(ctx, door, a, b, nil)
	return err
}
