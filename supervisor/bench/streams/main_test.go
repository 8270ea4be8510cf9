//go:build docker

package main

import (
	"encoding/json"
	"os/exec"
	"strings"
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

// TestSurgeOfContainers: two containers with room for 16 streams each, reached at
// ports that the engine publishes, carry 24 streams; while both are replaced a third
// one is there before either is drained, two are ready at every moment, and nothing
// is lost, refused or mixed.
func TestSurgeOfContainers(t *testing.T) {
	if out, err := exec.Command("docker", "version").CombinedOutput(); err != nil {
		t.Skipf("no Docker engine answers (Debian: docker.io): %s", out)
	}
	h, err := start(t.Context(), options{driver: "docker", workers: 2, room: 16, pace: 50 * time.Millisecond, surge: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.stop()
	all, err := h.questions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	load := h.load(t.Context(), all, 24)
	done := make(chan error, 1)
	go func() {
		_, err := h.roundhouse("rotate", "chat")
		done <- err
	}()
	for ended := false; !ended; {
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%v\n%s", err, h.log.String())
			}
			ended = true
		case <-time.After(50 * time.Millisecond):
		}
		if n := h.readyNow(t.Context()); n >= 0 && n < 2 {
			t.Errorf("only %d are ready", n)
		}
	}
	load.stop()
	r := result{}
	for _, s := range load.cut() {
		r.count(s)
	}
	if r.lost+r.refused+r.mixed > 0 || r.answers < 24 {
		t.Errorf("%d answers, %d lost, %d refused, %d mixed; the first: %s", r.answers, r.lost, r.refused, r.mixed, r.first)
	}
	out, err := h.roundhouse("events", "--json", "--limit", "100")
	if err != nil {
		t.Fatal(err, out)
	}
	var order []string
	for line := range strings.Lines(out) {
		var e struct{ Kind, Worker string }
		if json.Unmarshal([]byte(line), &e) == nil && (e.Kind == "turn" || e.Worker == "chat/relief" && e.Kind == "ready") {
			order = append(order, e.Kind+" "+e.Worker)
		}
	}
	if got := strings.Join(order, ", "); got != "ready chat/relief, turn chat/1, turn chat/2" {
		t.Errorf("events in the order %s\n%s", got, out)
	}
	t.Logf("%d answers, none lost", r.answers)
}
