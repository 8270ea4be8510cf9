package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// judged is a pool of two whose roll-outs are judged by twelve answers.
const judged = `
pool "chat" {
  driver  = "process"
  devices = "cpu"
  workers = 2
  engine {
    served_model_name = ["roundhouse-demo"]
    args              = ["--pace", "100ms"]
  }
  rotation {
    drain_timeout = "60s"
    stop_grace    = "10s"
  }
  canary {
    share        = 0.5
    min_requests = 12
  }
}
`

// lastRotation reads the state and the reason of the pool's last rotation.
func (s *system) lastRotation() (id int, state, reason string) {
	var v struct {
		Rotations []struct {
			ID            int
			State, Reason string
		}
	}
	res, err := http.Get(s.Admin + "/api/rotations")
	if err != nil {
		return 0, "", ""
	}
	defer res.Body.Close()
	if json.NewDecoder(res.Body).Decode(&v) != nil || len(v.Rotations) == 0 {
		return 0, "", ""
	}
	return v.Rotations[0].ID, v.Rotations[0].State, v.Rotations[0].Reason
}

// TestCanary rolls out a setting that is bad, and is found to be by real traffic
// alone: it starts, is healthy, and answers right, four times as slowly. It goes
// back by itself after one worker. A good one, by the same traffic, goes on to all.
// The paces lie so far apart that a busy machine, which adds to all of them, does
// not hide which is the best, and none is so quick that its worker lives on what
// the machine has left.
func TestCanary(t *testing.T) {
	t.Parallel()
	path, door, admin := writeConfig(t, judged)
	s := startAt(t, path, door, admin)
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	var answers tally
	answers.keepOf(ctx, t, s, 6, 3)

	pace := regexp.MustCompile(`"--pace", "[0-9]+ms"`)
	reload := func(to string) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, pace.ReplaceAll(text, []byte(fmt.Sprintf(`"--pace", %q`, to))), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, text := post(t, s.Admin+"/api/reload", ""); status != 200 || !strings.Contains(text, "args") {
			t.Fatalf("reload: %d %s", status, text)
		}
	}
	ended := func(id int, want string) string {
		t.Helper()
		var state, reason string
		poll(t, fmt.Sprintf("rotation %d is %s", id, want), func() bool {
			var n int
			n, state, reason = s.lastRotation()
			return n == id && state != "running"
		}, s.out.String)
		if state != want {
			t.Fatalf("rotation %d is %s (%s); want %s", id, state, reason, want)
		}
		return reason
	}
	reload("400ms")
	if reason := ended(1, "rolled_back"); !strings.Contains(reason, "tokens/s") && !strings.Contains(reason, "first token") {
		t.Errorf("reason %q", reason)
	}
	s.waitReady()
	for i, w := range s.known() {
		if want := map[bool]int{true: 3, false: 1}[i == 0]; w.Generation != want {
			t.Errorf("%s is in generation %d; want %d", w.ID, w.Generation, want)
		}
	}
	reload("40ms")
	ended(2, "done")
	for _, w := range s.known() {
		if w.Generation < 2 || w.State != "ready" {
			t.Errorf("after the good one: %+v", w)
		}
	}
	answers.stop(t)
}
