package plugins

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"roundhouse/plugins/pb"
	"roundhouse/plugins/sdk"
	"roundhouse/test/leaks"
)

func TestMain(m *testing.M) {
	code := leaks.Check(m.Run())
	os.RemoveAll(binaries.dir)
	os.Exit(code)
}

// binaries holds what build has built, by source.
var binaries struct {
	sync.Mutex
	dir string
}

// build compiles a plugin once and returns a copy in a folder of the test's own,
// so that each test may put its settings beside it.
func build(t testing.TB, source string) Spec {
	t.Helper()
	binaries.Lock()
	defer binaries.Unlock()
	if binaries.dir == "" {
		dir, err := os.MkdirTemp("", "roundhouse-plugins-")
		if err != nil {
			t.Fatal(err)
		}
		binaries.dir = dir
	}
	name := strings.TrimSuffix(filepath.Base(source), ".go")
	built := filepath.Join(binaries.dir, name)
	if _, err := os.Stat(built); err != nil {
		cmd := exec.Command("go", "build", "-o", built, source)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cannot build %s: %v\n%s", source, err, out)
		}
	}
	text, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return Spec{Name: name, Kind: sdk.KindPolicy, Path: path, SHA256: hex.EncodeToString(sum[:])}
}

// run starts a plugin and waits for its handshake. Its limits of time are wide, where
// the test gives none: a busy machine is no fault of the plugin's.
func run(t testing.TB, spec Spec, o Options) *Plugin {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	for _, limit := range []*time.Duration{&o.Deadline, &o.StartTimeout} {
		if *limit == 0 {
			*limit = time.Minute
		}
	}
	p := Start(spec, o)
	t.Cleanup(p.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := p.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return p
}

// unruly starts the misbehaving policy in the given mode.
func unruly(t *testing.T, mode string, o Options) *Plugin {
	t.Helper()
	spec := build(t, "testdata/unruly.go")
	setMode(t, spec, mode)
	return run(t, spec, o)
}

func setMode(t *testing.T, spec Spec, mode string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(spec.Path), "mode"), []byte(mode), 0o644); err != nil {
		t.Fatal(err)
	}
}

// order asks a policy, with id as the request's.
func order(p *Plugin, id string, candidates ...*pb.Candidate) (workers []string, err error) {
	return orderWithin(context.Background(), p, id, candidates...)
}

// orderWithin is order, and gives up when ctx ends.
func orderWithin(ctx context.Context, p *Plugin, id string, candidates ...*pb.Candidate) (workers []string, err error) {
	err = p.Call(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
		res, err := pb.NewPolicyClient(conn).Order(ctx, &pb.OrderRequest{Request: &pb.Request{Id: id}, Candidates: candidates})
		workers = res.GetWorkers()
		return err
	})
	return workers, err
}

// eventually asks until ok holds: for what another process does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

func TestPolicyExample(t *testing.T) {
	p := run(t, build(t, "./examples/leastlatency"), Options{})
	got, err := order(p, "1",
		&pb.Candidate{Worker: "slow", PredictedTtftSeconds: 2},
		&pb.Candidate{Worker: "fast", PredictedTtftSeconds: 0.5, TokensPerSecond: 10},
		&pb.Candidate{Worker: "faster", PredictedTtftSeconds: 0.5, TokensPerSecond: 20})
	if want := []string{"faster", "fast", "slow"}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %v, %v; want %v", got, err, want)
	}
	s := p.Stats()
	if s.State != "running" || s.Calls != 1 || s.Failures != 0 || s.Protocol != 1 || s.P99 <= 0 || s.PID == 0 {
		t.Errorf("stats %+v", s)
	}
}

// A call that hangs costs itself: it ends at its deadline, others are answered
// meanwhile, and after several the plugin is left alone.
func TestHang(t *testing.T) {
	impatient := unruly(t, "hang", Options{Deadline: 100 * time.Millisecond})
	if _, err := order(impatient, "hang"); err == nil {
		t.Fatal("a call that hangs was answered")
	}
	p := unruly(t, "hang", Options{BreakerFailures: 3, BreakerOpen: time.Hour})
	hang := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := orderWithin(ctx, p, "hang"); err == nil {
			t.Error("a call that hangs was answered")
		}
	}
	hang()
	if got, err := order(p, "fine"); err != nil || !slices.Equal(got, []string{"a"}) {
		t.Fatalf("beside one that hangs: %v, %v", got, err)
	}
	for range 3 {
		hang()
	}
	if _, err := order(p, "fine"); !errors.Is(err, ErrBreakerOpen) {
		t.Fatalf("after failures in a row: %v; want %v", err, ErrBreakerOpen)
	}
	if s := p.Stats(); s.Breaker != "open" {
		t.Errorf("breaker is %s", s.Breaker)
	}
}

func TestCrash(t *testing.T) {
	p := unruly(t, "panic", Options{})
	pid := p.Stats().PID
	if _, err := order(p, "panic"); err == nil {
		t.Fatal("a plugin that panicked answered")
	}
	eventually(t, "a new process", func() bool { s := p.Stats(); return s.State == "running" && s.PID != pid })
	if _, err := order(p, "fine"); err != nil {
		t.Fatal(err)
	}
}

func TestKilled(t *testing.T) {
	p := unruly(t, "", Options{})
	pid := p.Stats().PID
	syscall.Kill(pid, syscall.SIGKILL)
	eventually(t, "a new process", func() bool { s := p.Stats(); return s.State == "running" && s.PID != pid })
}

func TestMemory(t *testing.T) {
	p := unruly(t, "eat", Options{Memory: 96 << 20})
	pid := p.Stats().PID
	for range 2 { // 64 MiB each
		order(p, "more") // it may be killed over the second
	}
	eventually(t, "killed for its memory", func() bool { s := p.Stats(); return s.PID != 0 && s.PID != pid })
}

func TestEnvironmentIsNotInherited(t *testing.T) {
	t.Setenv("SECRET_OF_THE_HOST", "canary")
	p := unruly(t, "environment", Options{})
	got, err := order(p, "1")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.Join(got, "\n"), "SECRET_OF_THE_HOST") {
		t.Errorf("the plugin sees the host's environment: %v", got)
	}
}

func TestFlood(t *testing.T) {
	var log bytes.Buffer
	var mu sync.Mutex
	h := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	began := time.Now()
	p := unruly(t, "flood", Options{Log: h})
	for range 5 {
		if _, err := order(p, "1"); err != nil {
			t.Fatal(err)
		}
	}
	p.Close()
	mu.Lock()
	defer mu.Unlock()
	// Each second of the clock that it ran through has its lines, and one more that
	// tells how many were dropped.
	seconds := int(time.Since(began).Seconds()) + 2
	if n := bytes.Count(log.Bytes(), []byte("\n")); n > seconds*(linesPerSecond+1)+1 { // and ours: it runs
		t.Errorf("%d of 10 000 lines were logged in %d seconds", n, seconds)
	}
	if !bytes.Contains(log.Bytes(), []byte("line 1")) {
		t.Error("nothing of what the plugin wrote was logged")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A plugin that cannot be started says why, in words that help.
func TestRefused(t *testing.T) {
	f := func(name string, want string, change func(*Spec)) {
		t.Run(name, func(t *testing.T) {
			spec := build(t, "testdata/unruly.go")
			change(&spec)
			within := time.Minute
			if name == "silent" {
				within = 100 * time.Millisecond
			}
			p := Start(spec, Options{StartTimeout: within, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
			defer p.Close()
			eventually(t, "an error", func() bool { return p.Stats().State == "failed" })
			if s := p.Stats(); !strings.Contains(s.LastError, want) {
				t.Errorf("got %q; want %q in it", s.LastError, want)
			}
		})
	}
	f("other contents", "is configured", func(s *Spec) { s.SHA256 = strings.Repeat("0", 64) })
	f("no checksum", "sha256sum", func(s *Spec) { s.SHA256 = "" })
	f("not there", "no such file", func(s *Spec) { s.Path += "-gone" })
	f("a folder", "no regular file", func(s *Spec) { s.Path = filepath.Dir(s.Path) })
	f("not executable", "not executable", func(s *Spec) { os.Chmod(s.Path, 0o644) })
	f("unknown user", "nobody-of-that-name", func(s *Spec) { s.User = "nobody-of-that-name" })
	f("rubbish", "no handshake", func(s *Spec) { setMode(t, *s, "rubbish") })
	f("another protocol", "incompatible", func(s *Spec) { setMode(t, *s, "version") })
	f("silent", "timeout", func(s *Spec) { setMode(t, *s, "silent") })
	f("another kind", "it is a policy", func(s *Spec) { s.Kind = sdk.KindFilter })
}

// A plugin is let go at any moment of its start, and nobody waits for the rest of it.
func TestClosedWhileStarting(t *testing.T) {
	spec := build(t, "testdata/unruly.go")
	setMode(t, spec, "silent")
	for i := range 12 {
		p := Start(spec, Options{StartTimeout: time.Hour, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		<-time.After(time.Duration(i) * 3 * time.Millisecond) // any moment is the right one
		p.Close()
	}
}

// A plugin runs as the user that the configuration names.
func TestAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may start a program as another user")
	}
	spec := build(t, "testdata/unruly.go")
	dir, err := os.MkdirTemp("", "roundhouse-user-") // the user must reach its folder
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.Chmod(dir, 0o755), os.Rename(spec.Path, filepath.Join(dir, "unruly"))); err != nil {
		t.Fatal(err)
	}
	spec.Path, spec.User = filepath.Join(dir, "unruly"), "nobody"
	setMode(t, spec, "who")
	p := run(t, spec, Options{})
	if got, err := order(p, "1"); err != nil || !slices.Equal(got, []string{"65534"}) {
		t.Fatalf("runs as %v, %v; want nobody's 65534", got, err)
	}
}

// Nobody else on the machine can talk to a plugin: its socket lies in a folder that
// is closed to others, and who has no certificate is not answered.
func TestSocketIsClosed(t *testing.T) {
	temp := t.TempDir()
	unruly(t, "", Options{TempDir: temp})
	sockets, err := filepath.Glob(filepath.Join(temp, "roundhouse-plugin-*", "plugin*"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %v, %v", sockets, err)
	}
	if info, err := os.Stat(filepath.Dir(sockets[0])); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the socket: %v, %v", info.Mode(), err)
	}
	c, err := net.Dial("unix", sockets[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stranger := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	stranger.SetDeadline(time.Now().Add(10 * time.Second))
	if err := stranger.Handshake(); err == nil {
		_, err = stranger.Read(make([]byte, 1)) // in TLS 1.3 the refusal comes behind the handshake
		if err == nil {
			t.Error("a stranger was answered")
		}
	}
}

// What was checked is what runs, even if the file is swapped meanwhile.
func TestSealed(t *testing.T) {
	spec := build(t, "testdata/unruly.go")
	program, err := sealProgram(spec.Path, spec.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if _, err := program.WriteAt([]byte("#!/bin/sh"), 0); err == nil {
		t.Error("the checked copy can be changed")
	}
}

// A changed plugin serves before the old one is let go, and one that does not
// come up changes nothing.
func TestApply(t *testing.T) {
	h := NewHost(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Deadline: time.Minute, StartTimeout: time.Minute})
	defer h.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	one := build(t, "testdata/unruly.go")
	if err := h.Apply(ctx, []Spec{one}); err != nil {
		t.Fatal(err)
	}
	first := h.Get("unruly")
	if err := h.Apply(ctx, []Spec{one}); err != nil || h.Get("unruly") != first {
		t.Fatalf("an unchanged plugin was replaced: %v", err)
	}

	bad := one
	bad.SHA256 = strings.Repeat("0", 64)
	short, cancelShort := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancelShort()
	if err := h.Apply(short, []Spec{bad}); err == nil || h.Get("unruly") != first {
		t.Fatalf("a plugin that does not come up replaced one that runs: %v", err)
	}

	two := build(t, "testdata/unruly.go")
	if err := h.Apply(ctx, []Spec{two}); err != nil || h.Get("unruly") == first {
		t.Fatalf("a changed plugin was not replaced: %v", err)
	}
	if _, err := order(h.Get("unruly"), "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := order(first, "1"); !errors.Is(err, ErrNotRunning) && err == nil {
		t.Error("the old plugin still answers")
	}
	if err := h.Apply(ctx, []Spec{two, two}); err == nil {
		t.Error("two plugins of one name were accepted")
	}
}
