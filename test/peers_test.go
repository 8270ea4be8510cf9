package test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/balancer/sim"
	"roundhouse/test/ports"
)

// budgeted is a host of its own: a state folder, a supervisor, a door and a worker.
type budgeted struct {
	*system
	path, door, admin string
}

const teamKey, hostsToken = "a key of two hosts", "the token of both hosts"

// newBudgeted writes a host's configuration; the door exchanges with other's. Both hosts
// call different workers by the same name.
func newBudgeted(t *testing.T, admin, other string) *budgeted {
	t.Helper()
	worker := sim.New(sim.Options{Words: 2})
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worker.Stop)
	dir := t.TempDir()
	b := &budgeted{path: filepath.Join(dir, "roundhouse.hcl"), door: ports.Address(t), admin: admin}
	text := fmt.Sprintf(`state_dir = %q
door {
  listen = %q
  peers  = [%q]
  key "team" {
    sha256 = ["%x"]
    models = ["*"]
    month_budget {
      requests = 12
    }
  }
}
admin {
  listen = %q
  token  = %q
}
pool "chat" {
  driver = "static"
  worker "w1" {
    url = %q
  }
}
`, filepath.Join(dir, "state"), b.door, other, sha256.Sum256([]byte(teamKey)), admin, hostsToken, worker.URL)
	if err := os.WriteFile(b.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// up starts the host, until its door knows the worker's model.
func (b *budgeted) up(t *testing.T) {
	b.system = startWith(t, hostsToken, b.path, b.door, b.admin)
	poll(t, "the door knows the model", func() bool {
		status, text := b.send("GET", "/v1/models", "")
		return status == http.StatusOK && strings.Contains(text, `"sim"`)
	}, b.out.String)
}

// send sends a request with the key, on a connection of its own: a door that ends waits a
// while for those that stay.
func (b *budgeted) send(method, path, body string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequest(method, b.Door+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Authorization", "Bearer "+teamKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// ask sends requests, and fails the test unless each gets the status.
func (b *budgeted) ask(n, want int) {
	b.t.Helper()
	for range n {
		status, text := b.send("POST", "/v1/completions", `{"model":"sim","prompt":"one two","max_tokens":2}`)
		if status != want || want == http.StatusTooManyRequests && !strings.Contains(text, "insufficient_quota") {
			b.t.Errorf("%d %s; want %d", status, text, want)
		}
	}
}

// knows waits until the door knows of so many requests at all doors.
func (b *budgeted) knows(n int) {
	b.t.Helper()
	want := fmt.Sprintf("\nroundhouse_key_budget_used{key=\"team\",kind=\"requests\",period=\"month\"} %d\n", n)
	poll(b.t, fmt.Sprintf("the door knows of %v requests", n), func() bool { return strings.Contains(b.asked("/metrics"), want) },
		b.out.String)
}

// TestBudgetOfTwoHosts: two hosts that share no folder and no worker spend one budget. It
// outlives the doors of either, also where the other host is down meanwhile.
func TestBudgetOfTwoHosts(t *testing.T) {
	t.Parallel()
	east, west := ports.Address(t), ports.Address(t)
	a, b := newBudgeted(t, east, west), newBudgeted(t, west, east)
	a.up(t)
	b.up(t)
	a.ask(3, http.StatusOK)
	b.ask(3, http.StatusOK)
	a.knows(6)
	b.knows(6)

	b.stop()
	a.stop()
	a.up(t)
	a.knows(6) // the three of the host that is down among them
	a.ask(1, http.StatusOK)
	a.knows(7)
	a.stop()

	b.up(t) // alone it knows what it was told before it went
	b.knows(6)
	a.up(t)
	b.knows(7)
	b.ask(4, http.StatusOK)
	a.knows(11)
	a.ask(1, http.StatusOK)
	b.knows(12)
	a.ask(1, http.StatusTooManyRequests)
	b.ask(1, http.StatusTooManyRequests)

	total := 0
	for _, host := range []*budgeted{a, b} {
		cmd := exec.Command(built.Path(t, "roundhouse"), "usage", "--json", "--admin", host.Admin)
		cmd.Env = append(os.Environ(), "ROUNDHOUSE_ADMIN_TOKEN="+hostsToken)
		out, err := cmd.Output()
		var u struct{ Rows []struct{ Requests int } }
		if err != nil || json.Unmarshal(out, &u) != nil || len(u.Rows) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		total += u.Rows[0].Requests
	}
	if total != 12 {
		t.Errorf("the hosts' exports have %d requests; want 12", total)
	}
}
