package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"roundhouse/supervisor/driver/drivertest"
	"roundhouse/supervisor/moby"
	"roundhouse/test/patience"
	"roundhouse/test/ports"
	"roundhouse/test/program"
)

// built are the programs, unless -programs says where they are.
var built program.Set

// roundhouse is where the program is.
func roundhouse(t *testing.T) string {
	t.Helper()
	if *programs != "" {
		return filepath.Join(*programs, "roundhouse")
	}
	return built.Path(t, "roundhouse")
}

// house is a running `roundhouse up` over the tests' engine.
type house struct {
	t      *testing.T
	lab    *lab
	pool   string
	config string // the file
	door   string
	admin  string
	up     *exec.Cmd
	log    strings.Builder
}

// houseFor starts one with a pool block, whose name is the pool's.
func houseFor(t *testing.T, name, pool string) *house {
	t.Helper()
	dir := t.TempDir()
	open(t, dir)
	h := &house{
		t: t, lab: engineFor(t), pool: name, config: filepath.Join(dir, "config.hcl"),
		door: ports.Address(t), admin: ports.Address(t),
	}
	h.write(pool)
	h.begin()
	t.Cleanup(func() {
		_ = h.up.Process.Signal(syscall.SIGTERM)
		err := h.up.Wait()
		if err != nil || t.Failed() {
			t.Errorf("up ended with %v and wrote\n%s", err, h.log.String())
		}
		h.lab.removeOurs(t, name)
	})
	return h
}

// begin starts the program.
func (h *house) begin() {
	h.t.Helper()
	h.up = exec.Command(roundhouse(h.t), "up", "-c", h.config)
	h.up.Env = append(os.Environ(), "DOCKER_HOST="+h.lab.host.URL)
	h.up.Stdout, h.up.Stderr = &h.log, &h.log
	if *rootless { // as the user whose engine it is
		h.up.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user(h.t), Gid: user(h.t)}}
	}
	if err := h.up.Start(); err != nil {
		h.t.Fatal(err)
	}
}

// restart kills the supervisor, whose door and workers go on, and starts another.
func (h *house) restart() {
	h.t.Helper()
	_ = h.up.Process.Kill()
	_ = h.up.Wait()
	h.begin()
	drivertest.Until(h.t, "the successor answers", func() bool { return strings.Count(h.states(), "ready") == 2 })
}

// write puts a pool block into the configuration.
func (h *house) write(pool string) {
	h.t.Helper()
	text := fmt.Sprintf("state_dir = %q\ndoor {\n  listen = %q\n}\nadmin {\n  listen = %q\n}\n%s\n", filepath.Join(filepath.Dir(h.config), "state"), h.door, h.admin, pool)
	if err := os.WriteFile(h.config, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// run runs an operator command and returns what it printed.
func (h *house) run(args ...string) (string, error) {
	out, err := exec.Command(roundhouse(h.t), append(args, "--admin", h.admin)...).CombinedOutput()
	return string(out), err
}

// states are each worker's generation and state, in a line.
func (h *house) states() string {
	var out []string
	for _, w := range h.workers() {
		out = append(out, fmt.Sprint(w.Generation, " ", w.State))
	}
	return strings.Join(out, " ")
}

type seenWorker struct {
	Generation int
	State      string
	Reason     string
	LastError  string `json:"last_error"`
	Place      struct{ Container string }
}

func (h *house) workers() []seenWorker {
	res, err := http.Get("http://" + h.admin + "/api/workers")
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	var v struct{ Workers []seenWorker }
	if json.NewDecoder(res.Body).Decode(&v) != nil {
		return nil
	}
	return v.Workers
}

// rotation is how the pool's last rotation stands: "halted: why".
func (h *house) rotation() string {
	res, err := http.Get("http://" + h.admin + "/api/rotations")
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	var v struct {
		Rotations []struct{ State, Reason string }
	}
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil || len(v.Rotations) == 0 {
		return fmt.Sprint("none ", err)
	}
	r := v.Rotations[len(v.Rotations)-1]
	return r.State + ": " + r.Reason
}

// until waits for each worker's generation and state.
func (h *house) until(want string) {
	h.t.Helper()
	limit := patience.For(drivertest.Patience)
	for h.states() != want {
		if limit.Over() {
			h.t.Fatalf("not %q within %v: %+v, %s", want, drivertest.Patience, h.workers(), h.rotation())
		}
		<-time.After(20 * time.Millisecond)
	}
}

// load keeps clients asking until stop is called, which returns how many
// answers there were. Every request must be answered.
func (h *house) load() (stop func() int64) {
	var ending atomic.Bool
	var asked atomic.Int64
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for !ending.Load() {
				if err := h.ask(); err != nil {
					h.t.Errorf("after %d answers: %v", asked.Load(), err)
					return
				}
				asked.Add(1)
			}
		})
	}
	return func() int64 {
		ending.Store(true)
		clients.Wait()
		return asked.Load()
	}
}

// ask sends one request through the door.
func (h *house) ask() error {
	client := http.Client{Timeout: drivertest.Patience}
	res, err := client.Post("http://"+h.door+"/v1/completions", "application/json", strings.NewReader(`{"model":"fake","prompt":"a"}`))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(data), "choices") {
		return fmt.Errorf("%s %s %w", res.Status, data, err)
	}
	return nil
}

// removeOurs removes the containers of a pool.
func (l *lab) removeOurs(t *testing.T, pool string) {
	t.Helper()
	list, err := l.client.ContainerList(context.Background(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", moby.LabelPool+"="+pool))})
	if err != nil {
		t.Error(err)
	}
	for _, c := range list {
		if err := l.client.ContainerRemove(context.Background(), c.ID, container.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	}
}
