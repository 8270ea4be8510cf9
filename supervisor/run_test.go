package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"roundhouse/configs"
	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/process"
	"roundhouse/test/leaks"
	"roundhouse/test/ports"
)

// The test program is also the door, the worker, the shim, and a supervisor
// that a test may kill.
func TestMain(m *testing.M) {
	var err error
	endWithTest()
	switch {
	case len(os.Args) > 2 && os.Args[1] == "supervise" && os.Args[2] == "shim":
		err = process.Shim(os.Args[3:], os.Environ())
	case len(os.Args) > 1 && os.Args[1] == "balance":
		err = balanceFake(os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == "serve":
		err = serveFake(os.Args[2:])
	case len(os.Args) > 2 && os.Args[1] == "up":
		if err = upFake(os.Args[2]); errors.Is(err, ErrUpgrade) {
			err = syscall.Exec(os.Args[0], os.Args, os.Environ())
		}
	case len(os.Args) > 1 && os.Args[1] == "version":
		fmt.Printf("{\"version\":%q}\n", testVersion())
	case len(os.Args) > 1 && os.Args[1] == "validate":
	default:
		os.Setenv(testPID, strconv.Itoa(os.Getpid()))
		code := m.Run()
		http.DefaultClient.CloseIdleConnections()
		os.Exit(leaks.Check(code))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// client asks over a new connection every time: one that is kept is closed by a
// process that ends, and may be so just when the next question goes out on it.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Minute}

// upFake runs a supervisor on a configuration file of the test's.
func upFake(path string) error {
	cfg, err := readConfig(path)
	if err != nil {
		return err
	}
	s, err := New(optionsFor(cfg, path, slog.New(slog.NewTextHandler(os.Stderr, nil))))
	if err != nil {
		return err
	}
	if left, err := strconv.Atoi(os.Getenv("FAKE_DIE_AT")); err == nil {
		s.memory.journal.Fault = dieAt(left, s)
	}
	return s.Run(context.Background())
}

// dieAt kills this process at a write of the journal during a rotation: counted
// from the first one that has a rotation running, before it and after it.
func dieAt(step int, s *Supervisor) func(bool) error {
	return func(bool) error {
		if r := s.memory.intent.Rotations["chat"]; r.State != core.Running {
			return nil
		}
		if step--; step == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
}

// testVersion is what this test program calls itself; an upgrade's test changes
// the file that says so.
func testVersion() string {
	text, err := os.ReadFile(os.Getenv("FAKE_VERSION_FILE"))
	if err != nil {
		return "test"
	}
	return string(text)
}

// readConfig reads a configuration that writeConfig wrote as JSON.
func readConfig(path string) (*configs.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	cfg := new(configs.Config)
	return cfg, json.Unmarshal(data, cfg)
}

func optionsFor(cfg *configs.Config, path string, log *slog.Logger) Options {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "FAKE_BUILD=" + testVersion(), testPID + "=" + os.Getenv(testPID)}
	return Options{
		Config: cfg, Load: func() (*configs.Config, error) { return readConfig(path) }, Program: program, Worker: program,
		Env: env, DoorEnv: env, Version: testVersion(), File: path, Sysfs: "/sys", Proc: "/proc", Log: log,
		Proven: 500 * time.Millisecond,
	}
}

// bench is one supervisor under test, in this process or in one of its own.
type bench struct {
	t    *testing.T
	dir  string
	cfg  *configs.Config
	path string
	s    *Supervisor // nil: in a process of its own
	cmd  *exec.Cmd
	env  []string      // of cmd, besides this process's own
	dead chan struct{} // closed once cmd has ended
	door string
	api  string
}

// newBench prepares a pool "chat" of n fake workers. Most of what such a test does is
// waiting, so others go on beside it.
func newBench(t *testing.T, n int, environment map[string]string) *bench {
	t.Helper()
	t.Parallel()
	return anotherBench(t, n, environment)
}

// anotherBench is a second one in the same test.
func anotherBench(t *testing.T, n int, environment map[string]string) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	b.path = filepath.Join(b.dir, "config.json")
	second, minute := configs.Duration(time.Second), configs.Duration(time.Minute)
	b.cfg = &configs.Config{
		StateDir:   filepath.Join(b.dir, "state"),
		Door:       configs.Door{Listen: ports.Address(t)},
		Admin:      configs.Admin{Listen: ports.Address(t)},
		Supervisor: configs.Supervisor{Parallel: 1},
		Pools: []configs.Pool{{
			Name: "chat", Driver: "process", Policy: "least_kv", Devices: "cpu", Workers: counted(n),
			Engine: configs.Engine{ServedModelName: []string{"fake"}, Environment: environment},
			Rotation: configs.Rotation{
				Strategy: "in_place", DrainTimeout: 2 * minute, ReadyTimeout: 2 * minute, StopGrace: 5 * second, MinReady: n - 1, Missed: "once",
			},
		}},
	}
	b.door, b.api = "http://"+b.cfg.Door.Listen, "http://"+b.cfg.Admin.Listen
	return b
}

func (b *bench) write() {
	b.t.Helper()
	data, err := json.Marshal(b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path, data, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// start runs the supervisor in this process; its end comes on the channel.
func (b *bench) start(ctx context.Context) chan error {
	b.t.Helper()
	b.write()
	cfg, err := readConfig(b.path)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.s, err = New(optionsFor(cfg, b.path, slog.New(slog.NewTextHandler(b.t.Output(), nil)))); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- b.s.Run(ctx) }()
	return ended
}

// run starts the supervisor and ends everything with the test.
func (b *bench) run() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := b.start(ctx)
	b.t.Cleanup(func() {
		if err := b.s.Shutdown(ctx, false); err != nil {
			b.t.Errorf("shutdown: %v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("run: %v", err)
		}
		if pids := b.pids(); len(pids) > 0 {
			b.t.Errorf("left running: %s", shown(pids))
		}
	})
	b.waitReady()
}

// pids are the living children that the state folder's locks name.
func (b *bench) pids() []int {
	n, err := process.NewManager(b.cfg.StateDir, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer n.Close()
	found, err := n.Find()
	if err != nil {
		b.t.Fatal(err)
	}
	var out []int
	for _, f := range found {
		if f.Running {
			out = append(out, f.PID)
		}
	}
	return out
}

// shown says of each process what it runs and how it is.
func shown(pids []int) string {
	var out strings.Builder
	for _, pid := range pids {
		argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // gone: empty
		fmt.Fprintf(&out, "%d: %s, %.60s; ", pid, strings.ReplaceAll(string(argv), "\x00", " "), stat)
	}
	return out.String()
}

// seen is what a test reads of a worker.
type seen struct {
	ID, State  string
	Reason     string
	Generation uint64
	Restarts   int
	LastError  string `json:"last_error"`
	Place      struct{ PID int }
}

func (b *bench) workers() []seen {
	var v struct{ Workers []seen }
	res, err := client.Get(b.api + "/api/workers")
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	if json.NewDecoder(res.Body).Decode(&v) != nil {
		return nil
	}
	return v.Workers
}

// until polls what only other processes know.
func (b *bench) until(what string, ok func() bool) {
	b.t.Helper()
	late := time.After(3 * time.Minute)
	for !ok() {
		select {
		case <-late:
			b.t.Fatalf("%s: not within three minutes; workers %+v", what, b.workers())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (b *bench) waitReady() {
	b.t.Helper()
	b.until("all workers ready", func() bool {
		list := b.workers()
		for _, w := range list {
			if w.State != "ready" {
				return false
			}
		}
		return len(list) > 0
	})
	b.until("the door serves", func() bool { return b.count(1) == nil })
}

func (b *bench) post(path, body string) (int, string) {
	b.t.Helper()
	res, err := client.Post(b.api+path, "application/json", strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// count asks for the numbers 1 to n and checks each.
func (b *bench) count(n int) error {
	res, err := client.Post(b.door+"/v1/completions", "application/json", strings.NewReader(fmt.Sprintf(`{"stream":true,"max_tokens":%d}`, n)))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	for i := 1; i <= n; i++ {
		if !lines.Scan() || lines.Text() != strconv.Itoa(i) {
			return fmt.Errorf("the answer ends after %d of %d: %w", i-1, n, errors.Join(lines.Err(), io.ErrUnexpectedEOF))
		}
	}
	return nil
}

// rotationWaits says how the rotation stands and why its next turn cannot begin.
func (b *bench) rotationWaits() (state, why string) {
	var v struct {
		Rotations []struct{ State, Waiting string }
	}
	res, err := client.Get(b.api + "/api/rotations")
	if err != nil {
		return "", ""
	}
	defer res.Body.Close()
	if json.NewDecoder(res.Body).Decode(&v) != nil || len(v.Rotations) == 0 {
		return "", ""
	}
	return v.Rotations[0].State, v.Rotations[0].Waiting
}

// clear ends the children that a supervisor left running on purpose.
func (b *bench) clear() {
	b.t.Helper()
	n, err := process.NewManager(b.cfg.StateDir, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer n.Close()
	found, err := n.Find()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range found {
		if err := n.Stop(context.Background(), f.ID, 0); err != nil {
			b.t.Error(err)
		}
	}
}

// load keeps n streams of checkable answers going until the function that it
// returns is called, which fails the test for every answer that was not whole.
func (b *bench) load(n int) (stop func()) {
	ending, failures := make(chan struct{}), make(chan error, n)
	for range n {
		go func() {
			for {
				select {
				case <-ending:
					failures <- nil
					return
				default:
				}
				if err := b.count(40); err != nil {
					failures <- err
					return
				}
			}
		}()
	}
	return func() {
		b.t.Helper()
		close(ending)
		for range n {
			if err := <-failures; err != nil {
				b.t.Error(err)
			}
		}
	}
}

func (b *bench) rotation() (state, reason string) {
	var v struct {
		Rotations []struct{ State, Reason string }
	}
	res, err := client.Get(b.api + "/api/rotations")
	if err != nil {
		return "", ""
	}
	defer res.Body.Close()
	if json.NewDecoder(res.Body).Decode(&v) != nil || len(v.Rotations) == 0 {
		return "", ""
	}
	return v.Rotations[0].State, v.Rotations[0].Reason
}

func TestRotationUnderLoadLosesNothing(t *testing.T) {
	b := newBench(t, 2, map[string]string{"FAKE_PACE": "5ms"})
	b.run()
	before := b.workers()
	stop := make(chan struct{})
	failures := make(chan error, 8)
	for range 8 {
		go func() {
			for {
				select {
				case <-stop:
					failures <- nil
					return
				default:
				}
				if err := b.count(40); err != nil {
					failures <- err
					return
				}
			}
		}()
	}
	if status, text := b.post("/api/pools/chat/rotate", ""); status != http.StatusOK {
		t.Fatalf("rotate: %d %s", status, text)
	}
	if status, text := b.post("/api/pools/chat/rotate", ""); status != http.StatusConflict {
		t.Errorf("a second rotation: %d %s; want 409", status, text)
	}
	b.until("the rotation is done", func() bool { state, _ := b.rotation(); return state == "done" })
	close(stop)
	for range 8 {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	for i, w := range b.workers() {
		if w.Generation != before[i].Generation+1 || w.Place.PID == before[i].Place.PID {
			t.Errorf("%s was not turned: generation %d, pid %d", w.ID, w.Generation, w.Place.PID)
		}
	}
}

func TestCrashedWorkerIsRestarted(t *testing.T) {
	b := newBench(t, 2, nil)
	b.run()
	victim := b.workers()[0]
	if err := syscall.Kill(victim.Place.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.until("it is back", func() bool {
		w := b.workers()[0]
		return w.State == "ready" && w.Generation == victim.Generation+1
	})
	if w := b.workers()[0]; !strings.Contains(w.LastError, "killed") && w.Restarts != 1 {
		t.Errorf("restarts %d, last error %q", w.Restarts, w.LastError)
	}
}

// slowToPrepare is a driver whose preparations wait for go.
type slowToPrepare struct {
	driver.Driver
	begun chan string // whose
	gate  chan struct{}
}

func (d slowToPrepare) Prepare(_ context.Context, spec driver.Spec) error {
	d.begun <- spec.Name
	<-d.gate
	return nil
}

// A preparation that takes long is begun once, however often is looked meanwhile: the
// end of a second one would have the start look ended that came after the first, and
// the worker be started twice.
func TestPreparedOnce(t *testing.T) {
	b := newBench(t, 1, nil)
	b.cfg.Pools[0].Rotation.Strategy, b.cfg.Pools[0].Rotation.MinReady = "surge", 1
	b.run()
	d := slowToPrepare{begun: make(chan string, 100), gate: make(chan struct{})}
	if err := b.s.ask(t.Context(), func() {
		d.Driver = b.s.runners["process"].driver
		r := newRunner("process", d)
		b.s.runners["process"] = r
		b.s.follow(r)
	}); err != nil {
		t.Fatal(err)
	}
	if status, text := b.post("/api/pools/chat/rotate", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	first := <-d.begun
	if err := b.s.ask(t.Context(), func() {
		for range 5 {
			b.s.step()
		}
	}); err != nil {
		t.Fatal(err)
	}
	close(d.gate)
	b.until("the rotation is done", func() bool { state, _ := b.rotation(); return state == "done" })
	for range len(d.begun) {
		if again := <-d.begun; again == first {
			t.Errorf("the preparation for %s was begun once more", again)
		}
	}
}

func TestFirstStartThatFailsLeavesNothing(t *testing.T) {
	b := newBench(t, 2, map[string]string{"FAKE_FAIL": "/llm/no-model"})
	err := <-b.start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "/llm/no-model") {
		t.Errorf("got %v; want the end of the worker's log", err)
	}
	if pids := b.pids(); len(pids) > 0 {
		t.Errorf("left running: %v", pids)
	}
}

func TestBusyPortStartsNothing(t *testing.T) {
	b := newBench(t, 1, nil)
	l, err := net.Listen("tcp", b.cfg.Door.Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b.write()
	_, err = New(optionsFor(b.cfg, b.path, slog.New(slog.DiscardHandler)))
	if err == nil || !strings.Contains(err.Error(), b.cfg.Door.Listen) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v", err)
	}
	if pids := b.pids(); len(pids) > 0 {
		t.Errorf("left running: %v", pids)
	}
}
