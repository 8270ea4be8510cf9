package system

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/balancer/control/phase"
	"roundhouse/test/patience"
	"roundhouse/test/ports"
)

// Patience is how long anything may take, on an idle machine: two servers start on few cores.
const Patience = 10 * time.Minute

// System is a running `roundhouse up`.
type System struct {
	Door, Admin string // http://host:port
	State       string // the state folder

	t      testing.TB
	cmd    *exec.Cmd
	binary string
	config string
	log    string // a file
}

// Worker is what is read of GET /api/workers.
type Worker struct {
	ID         string
	State      phase.Phase
	Generation int
	Restarts   int
	Place      struct{ PID int }
}

// Start runs the binary on the blocks of a configuration, with ports and a state
// folder of its own, and waits until every worker is ready. door is what stands
// in the door block besides its address; prepare sees the empty state folder.
func Start(t testing.TB, binary, door, blocks string, prepare ...func(state string)) *System {
	t.Helper()
	dir := t.TempDir()
	listen, admin := ports.Address(t), ports.Address(t)
	s := &System{
		Door: "http://" + listen, Admin: "http://" + admin, State: filepath.Join(dir, "state"),
		t: t, binary: binary, config: filepath.Join(dir, "roundhouse.hcl"), log: filepath.Join(dir, "log"),
	}
	text := fmt.Sprintf("state_dir = %q\n\ndoor {\n  listen = %q\n%s\n}\n\nadmin {\n  listen = %q\n}\n\n%s\n", s.State, listen, door, admin, blocks)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.State, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, do := range prepare {
		do(s.State)
	}
	s.Up()
	t.Cleanup(s.stop)
	s.Ready()
	return s
}

// Up starts the program, at first or after it was killed.
func (s *System) Up() {
	s.t.Helper()
	out, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close()
	s.cmd = exec.Command(s.binary, "up", "-c", s.config)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// Attempt starts the program where it must not come up, and returns what it said.
func (s *System) Attempt() (string, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, s.binary, "up", "-c", s.config).CombinedOutput()
	return string(out), err
}

// Kill ends the program that was started, the supervisor, without a word; its
// children live on.
func (s *System) Kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// DoorPID is the process of a door; 0 while there is none.
func (s *System) DoorPID() int {
	locks, err := filepath.Glob(filepath.Join(s.State, "run", "door@*.lock"))
	if err != nil {
		return 0
	}
	for _, lock := range locks {
		text, err := os.ReadFile(lock)
		pid := 0
		if err == nil {
			_, err = fmt.Sscan(string(text), &pid)
		}
		if err == nil && syscall.Kill(pid, 0) == nil {
			return pid
		}
	}
	return 0
}

// PID is the supervisor's.
func (s *System) PID() int { return s.cmd.Process.Pid }

// ended reports whether the program has, though nobody here has ended it.
func (s *System) ended() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, s.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// stop ends the system as an operator would.
func (s *System) stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(Patience, func() { s.cmd.Process.Kill() })
	defer late.Stop()
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("roundhouse up ended with %v", err)
	}
	if s.t.Failed() {
		s.t.Logf("roundhouse up printed:\n%s", s.Log())
	}
}

// Log is what the program has printed.
func (s *System) Log() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Get asks the admin API, and reports whether it answered.
func (s *System) Get(path string, into any) bool {
	res, err := http.Get(s.Admin + path)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK && json.NewDecoder(res.Body).Decode(into) == nil
}

// Post tells the admin API something, and returns its status; 0 where nobody answers.
func (s *System) Post(path, body string) int {
	res, err := http.Post(s.Admin+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

// Workers lists the workers; none where nobody answers.
func (s *System) Workers() []Worker {
	var list struct{ Workers []Worker }
	s.Get("/api/workers", &list)
	return list.Workers
}

// AllReady reports whether every worker is ready.
func (s *System) AllReady() bool {
	list := s.Workers()
	for _, w := range list {
		if w.State != phase.Ready {
			return false
		}
	}
	return len(list) > 0
}

// Ready waits until every worker is.
func (s *System) Ready() {
	s.t.Helper()
	s.Until("all workers ready", s.AllReady)
}

// Until asks for what only another process knows.
func (s *System) Until(what string, ok func() bool) {
	s.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit := patience.For(Patience)
	for !ok() {
		if <-tick.C; s.ended() {
			s.t.Fatalf("%s: roundhouse up has ended; it printed\n%s", what, s.Log())
		}
		if limit.Over() {
			s.t.Fatalf("%s: not within %v; %+v\n%s", what, Patience, s.Workers(), s.Log())
		}
	}
}
