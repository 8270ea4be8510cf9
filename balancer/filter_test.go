package balancer_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// TestFilterInTheDoor: what a filter says of a request is done with it, and it is told
// the end of every request that it let pass, of those too that the door then refused.
func TestFilterInTheDoor(t *testing.T) {
	filter := everything(t)
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true})}, func(s *control.WorkerSet) {
		s.Plugins = []configs.Plugin{filter}
		s.Routes = []configs.Route{{Name: "other", Targets: []configs.Target{{Model: "sim", Weight: 1}}}}
	})

	resp, body := r.post("/v1/chat/completions", strings.Replace(fmt.Sprintf(chatBody, false, ""), "sim", "no-such-model", 1), "X-Request-Id", "good")
	if resp.StatusCode != 200 || resp.Header.Get("X-Checked") != "200" || !strings.Contains(body, `"CHOICES"`) {
		t.Errorf("a request that the filter routes: %d %v %s", resp.StatusCode, resp.Header, body)
	}
	if resp, body := r.post("/v1/chat/completions", "forbidden", "X-Request-Id", "denied"); resp.StatusCode != 451 {
		t.Errorf("a request that the filter denies: %d %s", resp.StatusCode, body)
	}
	if resp, body := r.post("/v1/chat/completions", `{"messages"`, "X-Request-Id", "broken"); resp.StatusCode != 400 {
		t.Errorf("a request that the filter lets pass and the door refuses: %d %s", resp.StatusCode, body)
	}
	r.until("the priority that the filter set is counted", func() bool {
		return strings.Contains(r.metrics(), `roundhouse_queue_seconds_count{pool="p",priority="low"} 1`)
	})
	r.until("the filter is told both ends", func() bool {
		ends, _ := os.ReadFile(filepath.Join(filepath.Dir(filter.Path), "ends.txt"))
		return strings.Contains(string(ends), "good 200 ok") && strings.Contains(string(ends), "broken 400 refused")
	})
}

// everything builds the filter that sees, changes and denies requests.
func everything(t *testing.T) configs.Plugin {
	t.Helper()
	path := filepath.Join(t.TempDir(), "everything")
	build := exec.Command("go", "build", "-o", path, "extend/testdata/everything.go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return configs.Plugin{Name: "everything", Kind: "filter", Path: path, SHA256: fmt.Sprintf("%x", sha256.Sum256(text)), OnFailure: "closed"}
}
