//go:build docker

package compose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestImage packs the images, runs the whole of Roundhouse in one container as
// compose.yaml does (read-only, no capability, not root), rotates its workers
// while requests run, and stops it. Run by `go test -tags docker ./compose`
// where a Docker engine answers.
func TestImage(t *testing.T) {
	if out, err := exec.Command("docker", "version").CombinedOutput(); err != nil {
		t.Skipf("no Docker engine answers (Debian: docker.io): %s", out)
	}
	dir := t.TempDir()
	run(t, ".", "./images")

	door, admin := freeAddress(t), freeAddress(t)
	text, err := os.ReadFile("roundhouse.hcl")
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer(`":8000"`, fmt.Sprintf("%q", door), `"127.0.0.1:8001"`, fmt.Sprintf("%q", admin)).Replace(string(text))
	file := filepath.Join(dir, "roundhouse.hcl")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("roundhouse-test-%d", os.Getpid())
	run(t, dir, "docker", "run", "--detach", "--name", name, "--network", "host", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL",
		"--security-opt", "no-new-privileges:true", "--volume", file+":/etc/roundhouse/roundhouse.hcl:ro", "roundhouse/worker-cpu:latest")
	t.Cleanup(func() { _ = exec.Command("docker", "rm", "--force", "--volumes", name).Run() })
	inside := func(args ...string) string {
		args = append([]string{"exec", name, "roundhouse"}, append(args, "-c", "/etc/roundhouse/roundhouse.hcl")...)
		return run(t, dir, "docker", args...)
	}
	waitFor(t, func() error {
		out, err := exec.Command("docker", "exec", name, "roundhouse", "ps", "-c", "/etc/roundhouse/roundhouse.hcl").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "chat  2/2") {
			logs, _ := exec.Command("docker", "logs", name).CombinedOutput()
			return fmt.Errorf("%w\n%s\n%s", err, out, logs)
		}
		return nil
	})

	sent := underLoad(t, door, func() { inside("rotate", "chat") })
	if sent < 4 {
		t.Errorf("only %d requests during the rotation", sent)
	}
	t.Logf("%d requests while both workers were rotated, 0 lost", sent)

	run(t, dir, "docker", "stop", "--time", "60", name)
	if code := strings.TrimSpace(run(t, dir, "docker", "inspect", "--format", "{{.State.ExitCode}}", name)); code != "0" {
		t.Errorf("the container ended with %s; %s", code, run(t, dir, "docker", "logs", name))
	}
}

// underLoad keeps requests running while it does something. Each must get a
// whole answer; it returns how many did.
func underLoad(t *testing.T, door string, do func()) int64 {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var sent atomic.Int64
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := requests(door); err != nil {
					t.Errorf("lost: %v", err)
					return
				}
				sent.Add(4)
			}
		})
	}
	do()
	stop()
	all.Wait()
	return sent.Load()
}

func waitFor(t *testing.T, ready func() error) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	late := time.After(60 * time.Second)
	err := errors.New("not asked yet")
	for err != nil {
		select {
		case <-tick.C:
			err = ready()
		case <-late:
			t.Fatalf("not ready within a minute: %v", err)
		}
	}
}
