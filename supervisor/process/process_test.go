package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/supervisor/driver"
	"roundhouse/test/leaks"
)

// The test program is also the shim, and a child that does as it is told.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "shim" {
		fmt.Fprintln(os.Stderr, Shim(os.Args[2:], os.Environ()))
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == "child" {
		child(os.Args[2])
	}
	leaks.Main(m)
}

func child(kind string) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	fmt.Println("child", kind, os.Getpid())
	switch kind {
	case "polite":
		<-term
		os.Exit(0)
	case "deaf":
		for range term {
			continue
		}
	case "fails":
		os.Exit(7)
	case "no more processes":
		noMoreProcesses()
	case "limits":
		text, _ := os.ReadFile("/proc/self/limits")
		fmt.Print(string(text))
		os.Exit(0)
	case "affinity":
		status, _ := os.ReadFile("/proc/self/status")
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "Cpus_allowed_list") || strings.HasPrefix(line, "NoNewPrivs") || strings.HasPrefix(line, "Uid") || strings.HasPrefix(line, "Groups") {
				fmt.Print(line)
			}
		}
		os.Exit(0)
	}
}

func manager(t *testing.T) *Manager {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewManager(t.TempDir(), []string{program, "shim"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

func start(t *testing.T, n *Manager, c Child, kind string) int {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.Argv = []string{program, "child", kind}
	pid, err := n.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(context.Background(), c.ID, 0); err != nil {
			t.Error(err)
		}
		until(t, "it is reaped", func() bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return len(n.watched) == 0
		})
	})
	return pid
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for !ok() {
		select {
		case <-late:
			t.Fatalf("%s: not within a minute", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func log(t *testing.T, n *Manager, id string) string {
	t.Helper()
	data, err := os.ReadFile(n.LogFile(id))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEnds(t *testing.T) {
	f := func(kind, want string, stop func(n *Manager)) {
		t.Helper()
		n := manager(t)
		start(t, n, Child{ID: "pool/a"}, kind)
		until(t, "it has begun", func() bool { return strings.Contains(log(t, n, "pool/a"), "child "+kind) })
		stop(n)
		until(t, "its end is known", func() bool { return n.Ended("pool/a") == want })
		if n.Running("pool/a") {
			t.Errorf("%s still runs", kind)
		}
	}
	f("polite", "exit status 0", func(n *Manager) {
		if err := n.Stop(t.Context(), "pool/a", time.Minute); err != nil {
			t.Error(err)
		}
	})
	f("deaf", "killed by signal killed", func(n *Manager) {
		if err := n.Stop(t.Context(), "pool/a", 50*time.Millisecond); err != nil {
			t.Error(err)
		}
	})
	f("fails", "exit status 7", func(*Manager) {})
}

func TestOneOfAName(t *testing.T) {
	n := manager(t)
	start(t, n, Child{ID: "pool/a"}, "polite")
	program, _ := os.Executable()
	if _, err := n.Start(Child{ID: "pool/a", Argv: []string{program, "child", "polite"}}); err == nil {
		t.Error("two children of one name")
	}
}

func TestFindWatchesWhatOthersStarted(t *testing.T) {
	n := manager(t)
	pid := start(t, n, Child{ID: "pool/a", Note: []byte(`{"x":1}`)}, "polite")
	successor, err := NewManager(n.dir, n.shim)
	if err != nil {
		t.Fatal(err)
	}
	defer successor.Close()
	found, err := successor.Find()
	if err != nil || len(found) != 1 || found[0].PID != pid || !found[0].Running || string(found[0].Note) != `{"x":1}` {
		t.Fatalf("%+v %v", found, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-successor.Changed()
	found, err = successor.Find()
	if err != nil || found[0].Running {
		t.Errorf("%+v %v", found, err)
	}
}

// A record that names a process id which by now is another's: the lock and the
// time of its beginning tell.
func TestStrangersPID(t *testing.T) {
	n := manager(t)
	stranger := exec.Command("sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	}()
	if err := n.write(Record{ID: "pool/a"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.file("pool/a", ".lock"), []byte(lockOwner{stranger.Process.Pid, 1}.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.Stop(t.Context(), "pool/a", 0); err != nil {
		t.Error(err)
	}
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the stranger: %v", err)
	}
}

// A lock that names one who has ended, and is held for a moment by somebody else, is
// no living child.
func TestLockOutlivesItsHolder(t *testing.T) {
	n := manager(t)
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	if err := n.write(Record{ID: "pool/a", Ended: "exit status 0"}); err != nil {
		t.Fatal(err)
	}
	lock, err := takeLock(n.file("pool/a", ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.WriteString(lockOwner{gone.Process.Pid, 1}.String()); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { lock.Close() })
	found, err := n.Find()
	if err != nil || len(found) != 1 || found[0].Running || found[0].Ended != "exit status 0" {
		t.Errorf("%+v %v", found, err)
	}
}

// A record that the disk never had whole, since the machine went down, is nobody's: the
// others are found. One whose child lives is told of.
func TestCutRecord(t *testing.T) {
	for _, cut := range []string{"", `{"id":"pool/a","beg`, "\x00\x00\x00"} {
		n := manager(t)
		if err := n.write(Record{ID: "pool/b", Ended: "exit status 0"}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(n.file("pool/a", ".json"), []byte(cut), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			found, err := n.Find()
			if err != nil || len(found) != 1 || found[0].ID != "pool/b" {
				t.Errorf("beside %q: %+v %v", cut, found, err)
			}
		}
		start(t, n, Child{ID: "pool/a"}, "polite")
		if err := os.WriteFile(n.file("pool/a", ".json"), []byte(cut), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := n.Find(); err == nil || !strings.Contains(err.Error(), n.file("pool/a", ".json")) {
			t.Errorf("%q of a child that lives: %+v %v", cut, found, err)
		}
	}
}

// Who can open nothing does not take the children that live for gone.
func TestFindWithoutFiles(t *testing.T) {
	n := manager(t)
	start(t, n, Child{ID: "pool/a"}, "polite")
	var had unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &had); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: had.Max}); err != nil {
		t.Fatal(err)
	}
	found, err := n.Find()
	if e := unix.Setrlimit(unix.RLIMIT_NOFILE, &had); e != nil {
		t.Fatal(e)
	}
	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("without descriptors: %+v %v", found, err)
	}
	if found, err := n.Find(); err != nil || len(found) != 1 || !found[0].Running {
		t.Errorf("with them: %+v %v", found, err)
	}
}

func TestPlaceAndRights(t *testing.T) {
	n := manager(t)
	c := Child{ID: "pool/a", CPUs: "0", Confined: true}
	if os.Geteuid() == 0 {
		c.UID, c.GID = 60777, 60777
	}
	start(t, n, c, "affinity")
	until(t, "it has told", func() bool { return n.Ended("pool/a") == "exit status 0" })
	text := log(t, n, "pool/a")
	for _, want := range []string{"Cpus_allowed_list:\t0\n", "NoNewPrivs:\t1"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %q; want %q", text, want)
		}
	}
	if c.UID > 0 && (!strings.Contains(text, "Uid:\t60777\t60777\t60777\t60777") || !strings.Contains(text, "Groups:\t \n")) {
		t.Errorf("got %q", text)
	}
}

// The limits of a pool hold in its workers; what is asked for beyond what may be
// had is said in the log.
func TestLimits(t *testing.T) {
	n := manager(t)
	start(t, n, Child{ID: "pool/a", Limits: map[string]int64{"nofile": 512, "core": 0, "stack": -1}}, "limits")
	until(t, "it has told", func() bool { return n.Ended("pool/a") == "exit status 0" })
	for _, want := range []string{"Max open files +512 +512", "Max core file size +0 +0"} {
		if text := log(t, n, "pool/a"); !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("got %s; want %q", text, want)
		}
	}
	for _, bad := range []string{"files=3", "nofile", "nofile=x", "nofile=-2"} {
		if _, err := parseLimit(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	n := manager(t)
	start(t, n, Child{ID: "door/1", Files: []*os.File{file}}, "polite")
	until(t, "it has begun", func() bool { return strings.Contains(log(t, n, "door/1"), "child") })
	l.Close()
	file.Close()
	got, err := n.Listener("door/1", l.Addr().(*net.TCPAddr).Port)
	if err != nil {
		t.Skipf("this kernel lets nobody copy a descriptor: %v", err)
	}
	defer got.Close()
	again, err := net.FileListener(got)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Addr().String() != l.Addr().String() {
		t.Errorf("got %v; want %v", again.Addr(), l.Addr())
	}
}

func TestLogs(t *testing.T) {
	n := manager(t)
	path := n.LogFile("pool/a")
	put := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	put("one\ntwo\nthree\n")
	f := func(tail int, want string) {
		t.Helper()
		r, err := n.OpenLog(t.Context(), "pool/a", driver.LogOptions{Tail: tail})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		if err != nil || string(data) != want {
			t.Errorf("tail %d: %q %v", tail, data, err)
		}
	}
	f(0, "one\ntwo\nthree\n")
	f(1, "three\n")
	f(2, "two\nthree\n")
	f(9, "one\ntwo\nthree\n")

	ctx, cancel := context.WithCancel(t.Context())
	r, err := n.OpenLog(ctx, "pool/a", driver.LogOptions{Tail: 1, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	buf := make([]byte, 100)
	read := func(want string) {
		t.Helper()
		for got := ""; got != want; {
			k, err := r.Read(buf)
			got += string(buf[:k])
			if err != nil || !strings.HasPrefix(want, got) {
				t.Fatalf("got %q %v; want %q", got, err, want)
			}
		}
	}
	read("three\n")
	put("four\n")
	read("four\n")
	if err := turnLog(path); err != nil {
		t.Fatal(err)
	}
	put("five\n")
	read("five\n")
	if err := copyAway(path); err != nil {
		t.Fatal(err)
	}
	put("six\n")
	read("six\n")
	cancel()
	if _, err := r.Read(buf); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	files, _ := filepath.Glob(path + "*")
	if slices.Sort(files); len(files) != 3 {
		t.Errorf("kept %v", files)
	}
}

// A pool's command runs with its port and its environment, and what it leaves behind
// when it ends has ended, too.
func TestCommand(t *testing.T) {
	n := manager(t)
	d := NewDriver(n, "/nowhere/roundhouse-worker", []string{"PATH=" + os.Getenv("PATH")})
	spec := driver.Spec{Pool: "vllm", Name: "1", Port: 4711}
	spec.Container.Command = []string{"sh", "-c", `echo "$0 and $PORT, $GREETING, gpus <$GPUS>"; sleep 1000 & echo $! >"$PIDFILE"; wait`, "--port=${PORT}"}
	pidFile := filepath.Join(t.TempDir(), "pid")
	spec.Container.Environment = map[string]string{"GREETING": "at $PORT", "PIDFILE": pidFile}
	if err := d.Prepare(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	var left int
	until(t, "its helper runs", func() bool {
		text, _ := os.ReadFile(pidFile)
		_, err := fmt.Sscan(string(text), &left)
		return err == nil
	})
	if got, want := log(t, n, prefix+"vllm/1"), "--port=4711 and 4711, at 4711, gpus <>\n"; got != want {
		t.Errorf("it printed %q; want %q", got, want)
	}
	list, err := d.List(t.Context())
	if err != nil || len(list) != 1 || list[0].URL != "http://127.0.0.1:4711" {
		t.Fatalf("listed: %+v, %v", list, err)
	}
	if err := syscall.Kill(list[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "its helper has ended", func() bool { return ended(left) })
	until(t, "its lock is free", func() bool { return !n.Running(prefix + "vllm/1") })
}

// ended reports whether a process has ended, though nobody may have waited for it.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(state, "Z")
}
