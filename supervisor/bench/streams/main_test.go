//go:build docker

package main

import (
	"os/exec"
	"testing"
	"time"
)

// TestContainers: three containers, 48 streams of checkable answers, every
// container replaced once: none lost, refused or mixed. `make bench-rotation` does it
// twenty times and times the first tokens.
func TestContainers(t *testing.T) {
	if out, err := exec.Command("docker", "version").CombinedOutput(); err != nil {
		t.Skipf("no Docker engine answers (Debian: docker.io): %s", out)
	}
	r, err := measure(t.Context(), options{driver: "docker", workers: 3, streams: 48, room: 40, rotations: 1, steady: time.Second, pace: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r)
	if r.lost+r.refused+r.mixed > 0 || r.answers < 48 {
		t.Errorf("the first fault: %s", r.first)
	}
}
