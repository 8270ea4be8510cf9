package drivertest

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// Boot starts an engine and waits until it answers; what it writes goes to a log file.
// One that ends before is started again a few times: dockerd gives its containerd
// fifteen seconds, which a busy machine may need for itself.
func Boot(t testing.TB, log string, engine func() *exec.Cmd, answers func() bool) *exec.Cmd {
	t.Helper()
	for range 5 {
		cmd := begin(t, log, engine())
		up := false
		Until(t, "dockerd answers, or has ended", func() bool {
			up = answers()
			return up || ended(cmd)
		})
		if up {
			return cmd
		}
		t.Logf("dockerd has ended before it answered: %v", cmd.Wait())
	}
	text, _ := os.ReadFile(log)
	t.Fatalf("dockerd does not come up; it wrote\n%s", text[max(0, len(text)-4000):])
	return nil
}

// begin starts an engine that appends to a log file.
func begin(t testing.TB, log string, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// ended reports whether a child has, and leaves it to be waited for.
func ended(cmd *exec.Cmd) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}
