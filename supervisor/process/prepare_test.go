package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"roundhouse/supervisor/driver"
)

// noMoreProcesses is a child that may have no further process, and prepares a start.
func noMoreProcesses() {
	var threads sync.WaitGroup // those that the runtime may want from now on
	release := make(chan struct{})
	for range 40 {
		threads.Add(1)
		go func() {
			fds := make([]int, 2)
			if unix.Pipe(fds) == nil {
				go func() { <-release; unix.Write(fds[1], []byte{0}) }()
				threads.Done()
				unix.Read(fds[0], make([]byte, 1)) // in a system call a thread is its own
			}
		}()
	}
	threads.Wait()
	close(release)
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	d := NewDriver(nil, os.Args[0], nil)
	fmt.Println(d.Prepare(context.Background(), driver.Spec{}))
	os.Exit(0)
}

// §6.10 and §6.23: what cannot be started is found before anything is drained: a
// program that is not there, one that is not for this machine, and a machine that has
// no more processes to give.
func TestPrepare(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("\x7fELF of another machine"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := func(binary, model, want string) {
		t.Helper()
		spec := driver.Spec{}
		spec.Engine.Model = model
		err := NewDriver(nil, binary, nil).Prepare(t.Context(), spec)
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%s with %q: %s; want %q", binary, model, got, want)
		}
	}
	f("/bin/true", "", "")
	f("/bin/false", "", "") // it began
	f("/bin/true", filepath.Join(dir, "model"), "engine.model")
	f(filepath.Join(dir, "none"), "", "missing")
	f(broken, "", "exec format error")

	var other driver.Spec
	other.Container.Command = []string{filepath.Join(dir, "none"), "serve"}
	if err := NewDriver(nil, "/bin/true", nil).Prepare(t.Context(), other); err == nil || !strings.Contains(err.Error(), "command: ") {
		t.Errorf("a command that is not there: %v", err)
	}

	if os.Geteuid() != 0 {
		t.Skip("only root can become a user who has no more processes")
	}
	// Such a user must be able to read the program.
	program := filepath.Join(os.TempDir(), fmt.Sprintf("rh-prepare-%d", os.Getpid()))
	data, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(program)
	const want = "cannot be started: fork/exec " // EAGAIN's words follow the path
	for try := 1; ; try++ {
		cmd := exec.Command(program, "child", "no more processes")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
		// What it says counts, and not how it ends: threads are processes here, and a
		// runtime that wants one more than it was given beforehand ends with that.
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), want) && strings.Contains(string(out), "resource temporarily unavailable") {
			return
		}
		if try == 5 {
			t.Fatalf("%v: %.500s", err, out)
		}
	}
}
