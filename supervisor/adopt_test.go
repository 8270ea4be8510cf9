package supervisor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/journal"
	"roundhouse/supervisor/process"
)

// spawn runs the supervisor in a process of its own, which a test may kill.
func (b *bench) spawn() {
	b.t.Helper()
	b.write()
	program, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(b.dir, "supervisor.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	defer log.Close()
	b.cmd = exec.Command(program, "up", b.path)
	b.cmd.Env = append(os.Environ(), b.env...)
	b.cmd.Stdout, b.cmd.Stderr = log, log
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.dead = make(chan struct{})
	go func(cmd *exec.Cmd, dead chan struct{}) {
		_ = cmd.Wait() // killed, most often
		close(dead)
	}(b.cmd, b.dead)
	b.t.Cleanup(func() {
		b.kill()
		if b.t.Failed() {
			text, _ := os.ReadFile(filepath.Join(b.dir, "supervisor.log"))
			b.t.Logf("the killed supervisors wrote:\n%s", text)
		}
	})
}

func (b *bench) kill() {
	if b.cmd != nil {
		_ = b.cmd.Process.Kill() // it may be gone already
		<-b.dead
	}
}

// §6.14, idle: the supervisor is killed; workers and door serve on, and its
// successor adopts every one of them.
func TestKilledSupervisorIsSucceeded(t *testing.T) {
	b := newBench(t, 2, map[string]string{"FAKE_PACE": "5ms"})
	b.spawn()
	b.waitReady()
	before, generation := b.pids(), b.workers()[0].Generation
	answer := make(chan error, 1)
	go func() { answer <- b.count(200) }()
	b.kill()
	if err := b.count(20); err != nil {
		t.Errorf("without a supervisor: %v", err)
	}
	b.run()
	if after := b.pids(); !slices.Equal(before, after) {
		t.Errorf("processes %v became %v", before, after)
	}
	if w := b.workers()[0]; w.Generation != generation || w.Restarts != 0 {
		t.Errorf("%s was restarted: %+v", w.ID, w)
	}
	if err := <-answer; err != nil {
		t.Errorf("the stream that ran meanwhile: %v", err)
	}
	// The successor knows when an adopted worker ends.
	if err := syscall.Kill(b.workers()[1].Place.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.until("the adopted worker is replaced", func() bool {
		w := b.workers()
		return len(w) == 2 && w[1].State == "ready" && w[1].Generation == generation+1
	})
	// And holds the door's listener: a killed door is replaced, and nobody who
	// connects meanwhile is turned away.
	doors, err := filepath.Glob(filepath.Join(b.cfg.StateDir, "run", "door@*.lock"))
	if err != nil || len(doors) != 1 {
		t.Fatal(doors, err)
	}
	pid, err := os.ReadFile(doors[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("kill", "-9", strings.Fields(string(pid))[0]).Run(); err != nil {
		t.Fatal(err)
	}
	b.until("it is gone", func() bool { // till then it may take a connection with it
		lock, err := os.Open(doors[0])
		if err != nil {
			return true
		}
		defer lock.Close()
		return unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
	})
	if err := b.count(3); err != nil && !strings.Contains(err.Error(), "503") {
		t.Errorf("while the door is replaced: %v", err)
	}
	b.until("the next door serves", func() bool { return b.count(3) == nil })
}

// §6.14, in the middle of a rotation: killed again and again, the rotation gets
// through, and every answer is whole.
func TestSupervisorKilledInRotation(t *testing.T) {
	b := newBench(t, 2, map[string]string{"FAKE_PACE": "10ms"})
	b.spawn()
	b.waitReady()
	stop, failures := make(chan struct{}), make(chan error, 4)
	for range 4 {
		go func() {
			for {
				select {
				case <-stop:
					failures <- nil
					return
				default:
				}
				if err := b.count(60); err != nil {
					failures <- err
					return
				}
			}
		}()
	}
	if status, text := b.post("/api/pools/chat/rotate", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	for _, wait := range []time.Duration{50, 300, 700, 200, 450} {
		<-time.After(wait * time.Millisecond) // anywhere in the turn is the right place
		b.kill()
		b.spawn()
	}
	b.until("the rotation is done", func() bool { state, _ := b.rotation(); return state == "done" })
	close(stop)
	for range 4 {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	for _, w := range b.workers() {
		if w.Generation != 2 {
			t.Errorf("%s is in generation %d; want 2: each turned once", w.ID, w.Generation)
		}
	}
	b.kill()
	b.run() // to end all in order
}

// cutOff is a driver whose answer to the first start is lost on its way.
type cutOff struct {
	driver.Driver
	once sync.Once
}

func (d *cutOff) Start(ctx context.Context, spec driver.Spec) error {
	err := d.Driver.Start(ctx, spec)
	d.once.Do(func() { err = errors.Join(driver.ErrAway, err) })
	return err
}

// A worker whose driver was away when its start was to be told, and which runs after
// all, is taken as it is: it has not failed, and it is not started again.
func TestStartThatNobodyHeardOf(t *testing.T) {
	b := newBench(t, 2, nil)
	b.cfg.Pools[0].Driver = "plugin:far"
	b.runWith(func(o *Options) {
		o.OpenDriver = func(string, string) (driver.Driver, error) {
			n, err := process.NewManager(filepath.Join(b.dir, "far"), []string{o.Program, "supervise", "shim"})
			if err != nil {
				return nil, err
			}
			t.Cleanup(n.Close)
			return &cutOff{Driver: process.NewDriver(n, o.Worker, o.Env)}, nil
		}
	})
	b.until("both are ready", func() bool {
		w := b.workers()
		return len(w) == 2 && w[0].State == "ready" && w[1].State == "ready"
	})
	for _, w := range b.workers() {
		if w.Generation != 1 || w.Restarts != 0 || w.LastError != "" {
			t.Errorf("%+v", w)
		}
	}
	if text := b.events("failed") + b.events("interrupted"); text != "" {
		t.Errorf("events: %s", text)
	}
}

// §6.15: a second supervisor of one state folder is turned away.
func TestSecondSupervisorIsTurnedAway(t *testing.T) {
	b := newBench(t, 1, nil)
	b.run()
	other := anotherBench(t, 1, nil)
	other.cfg.StateDir = b.cfg.StateDir
	_, err := New(optionsFor(other.cfg, other.path, slog.New(slog.DiscardHandler)))
	if err == nil || !strings.Contains(err.Error(), "another supervisor") {
		t.Errorf("got %v", err)
	}
}

// §6.31: a damaged journal is set aside; what runs is found by its locks.
func TestDamagedJournalIsRebuilt(t *testing.T) {
	b := newBench(t, 2, nil)
	b.spawn()
	b.waitReady()
	before := b.pids()
	b.kill()
	path := filepath.Join(b.cfg.StateDir, "journal")
	if err := os.Truncate(path, 5000); err != nil {
		t.Fatal(err)
	}
	b.run()
	if after := b.pids(); !slices.Equal(before, after) {
		t.Errorf("processes %v became %v", before, after)
	}
	if aside, _ := filepath.Glob(path + ".damaged-*"); len(aside) != 1 {
		t.Errorf("set aside: %v", aside)
	}
}

// A new configuration goes to one worker; when it does not start, the old one
// comes back, the rotation says so, and is not tried again.
func TestRollBack(t *testing.T) {
	b := newBench(t, 2, nil)
	b.run()
	b.cfg.Pools[0].Engine.Environment = map[string]string{"FAKE_FAIL": "new-model"}
	b.write()
	if status, text := b.post("/api/reload", ""); status != http.StatusOK || !strings.Contains(text, "engine") {
		t.Fatal(status, text)
	}
	b.until("the rotation is rolled back", func() bool { state, _ := b.rotation(); return state == "rolled_back" })
	b.waitReady()
	if _, reason := b.rotation(); !strings.Contains(reason, "chat/1") {
		t.Errorf("reason %q", reason)
	}
	b.cfg.Pools[0].Engine.Environment = map[string]string{"NEW": "1"}
	b.write()
	if status, text := b.post("/api/reload", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("the good one goes through", func() bool { state, _ := b.rotation(); return state == "done" })
}

// Operators: drain holds, undrain returns, stop stops, start starts.
func TestOperatorCommands(t *testing.T) {
	b := newBench(t, 2, nil)
	b.run()
	f := func(verb, state string) {
		t.Helper()
		if status, text := b.post("/api/workers/chat/1/"+verb, ""); status != http.StatusOK {
			t.Fatalf("%s: %d %s", verb, status, text)
		}
		b.until(verb, func() bool { return b.workers()[0].State == state })
	}
	f("drain", "drained")
	f("undrain", "ready")
	f("stop", "stopped")
	if err := b.count(5); err != nil {
		t.Errorf("with one stopped: %v", err)
	}
	f("start", "ready")
	f("rotate", "ready")
	if status, _ := b.post("/api/workers/chat/9/drain", ""); status != http.StatusNotFound {
		t.Errorf("an unknown worker: %d", status)
	}
	if status, text := b.post("/api/pools/chat/scale", `{"workers":3}`); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("three workers", func() bool { w := b.workers(); return len(w) == 3 && w[2].State == "ready" })
	if status, text := b.post("/api/pools/chat/scale", `{"workers":2}`); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("two processes", func() bool { return len(b.workers()) == 2 && len(b.pids()) == 3 })
}

func TestAdminTurnsAway(t *testing.T) {
	b := newBench(t, 1, nil)
	b.cfg.Admin.Token = "" // JSON hides a secret; the checks of Host and Origin stand before it
	b.run()
	f := func(host, origin string, want int) {
		t.Helper()
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, b.api+"/api/version", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("Host %q, Origin %q: %d; want %d", host, origin, res.StatusCode, want)
		}
	}
	f("127.0.0.1:8001", "", 200)
	f("localhost:8001", "http://localhost:8001", 200)
	f("attacker.example", "", 403)
	f("127.0.0.1:8001", "http://attacker.example", 403)
	f("127.0.0.1:8001", "null", 403)
}

// §6.19: the program is executed anew under load: the same process and the
// same workers, a new door on the same listener, no request refused or cut.
func TestUpgradeUnderLoad(t *testing.T) {
	b := newBench(t, 2, map[string]string{"FAKE_PACE": "5ms"})
	version := filepath.Join(b.dir, "version")
	b.env = []string{"FAKE_VERSION_FILE=" + version}
	if err := os.WriteFile(version, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.spawn()
	b.waitReady()
	before := b.workers()
	stop := b.load(8)
	if err := os.WriteFile(version, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, text := b.post("/api/upgrade", ""); status != http.StatusAccepted || !strings.Contains(text, `"to":"two"`) {
		t.Fatal(status, text)
	}
	b.until("the new door serves alone", func() bool {
		res, err := client.Get(b.api + "/api/version")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return strings.Contains(string(text), `"door":"two"`) && strings.Contains(string(text), `"version":"two"`) && len(b.pids()) == 3
	})
	stop()
	for i, w := range b.workers() {
		if w.Place.PID != before[i].Place.PID {
			t.Errorf("%s is another process", w.ID)
		}
	}
	b.kill()
	b.run() // to end all in order
}

// §6.10: what cannot be started is found before anything is drained.
func TestNothingIsDrainedForWhatCannotStart(t *testing.T) {
	b := newBench(t, 2, nil)
	b.run()
	before := b.workers()
	b.cfg.Pools[0].Engine.Model = filepath.Join(b.dir, "no-model")
	b.write()
	if status, text := b.post("/api/reload", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("the rotation is halted", func() bool { state, _ := b.rotation(); return state == "halted" })
	if _, reason := b.rotation(); !strings.Contains(reason, "no-model") || !strings.Contains(reason, "nothing was drained") {
		t.Errorf("reason %q", reason)
	}
	if after := b.workers(); !slices.Equal(before, after) {
		t.Errorf("workers %+v became %+v", before, after)
	}
	if err := os.Mkdir(b.cfg.Pools[0].Engine.Model, 0o700); err != nil {
		t.Fatal(err)
	}
	if status, text := b.post("/api/pools/chat/rotate", `{"continue":true}`); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("the rotation is done", func() bool { state, _ := b.rotation(); return state == "done" })
}

// After a reboot everything is started anew, but for what an operator stopped; the
// clock that never jumps begins again with the machine.
func TestReboot(t *testing.T) {
	b := newBench(t, 2, nil)
	b.spawn()
	b.waitReady()
	if status, text := b.post("/api/workers/chat/1/stop", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("it is stopped", func() bool { return b.workers()[0].State == "stopped" })
	b.kill()
	b.clear()
	j, err := journal.Open(filepath.Join(b.cfg.StateDir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	before := clock{Boot: "another", Zero: time.Now().Add(-365 * 24 * time.Hour)}
	if err := errors.Join(j.Write([]journal.Change{{Bucket: journal.Meta, Key: "clock", Value: before}}), j.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := b.start(ctx)
	b.until("what should run runs", func() bool {
		w := b.workers()
		return len(w) == 2 && w[0].State == "stopped" && w[1].State == "ready" && w[1].Generation == 2
	})
	if b.s.clock.Boot == "another" || b.s.clock.Now().Sub(time.Now()).Abs() > time.Minute {
		t.Errorf("the clock goes on from the boot before: %+v", b.s.clock)
	}
	if err := b.s.Shutdown(ctx, false); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
