//go:build docker

package swarm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/swarm"

	"roundhouse/supervisor/driver/drivertest"
	"roundhouse/test/patience"
)

const engineImage = "roundhouse-test-engine:1"

// built is the folder with the programs, built once by the first test that needs them.
var built struct {
	once sync.Once
	dir  string
	err  error
}

func programs(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "rh-built-"); built.err != nil {
			return
		}
		build := exec.Command("go", "build", "-tags", "noxpu", "-o", built.dir, "roundhouse/cmd/roundhouse", "roundhouse/cmd/roundhouse-worker")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

// pack makes an image of our own worker at a manager.
func (n *node) pack(t *testing.T) {
	t.Helper()
	program, err := os.ReadFile(filepath.Join(programs(t), "roundhouse-worker"))
	if err != nil {
		t.Fatal(err)
	}
	n.importImage(t, engineImage, "roundhouse-worker", program, `ENTRYPOINT ["/roundhouse-worker","serve"]`)
}

func (n *node) importImage(t *testing.T, name, file string, program []byte, change string) {
	t.Helper()
	layer := bytes.NewReader(drivertest.Layer(t, file, program))
	r, err := n.client.ImageImport(t.Context(), image.ImportSource{Source: layer, SourceName: "-"}, name, image.ImportOptions{Changes: []string{change}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if out, err := io.ReadAll(r); err != nil || bytes.Contains(out, []byte(`"error"`)) {
		t.Fatal(err, string(out))
	}
}

// fleet is a running `roundhouse up` at the manager.
type fleet struct {
	t    *testing.T
	node *node
	file string
	up   *exec.Cmd
	log  bytes.Buffer
	want []string // what was answered in peace
}

const fleetDoor, fleetAdmin = "10.97.0.1:8000", "127.0.0.1:8001"

// fleetFor brings up a pool of n of our own workers.
func fleetFor(t *testing.T, n int) *fleet {
	t.Helper()
	m := managerFor(t)
	f := &fleet{t: t, node: m, file: filepath.Join(t.TempDir(), "fleet.hcl")}
	text := fmt.Sprintf(`
state_dir = %q
door {
  listen     = %q
  slow_start = "1s"
  queue {
    max_wait = "10m"
  }
}
admin {
  listen = %q
}
supervisor {
  parallel = 2
}
pool "chat" {
  driver            = "swarm"
  image             = %q
  pull_policy       = "never"
  workers           = %d
  shm_size          = "64MiB"
  generic_resources = { SLOT = 1 }
  engine {
    served_model_name = ["roundhouse-demo"]
    args              = ["--max-num-seqs", "40", "--pace", "15ms"]
  }
  rotation {
    min_ready     = 2
    drain_timeout = "20s"
    stop_grace    = "10s"
  }
}
`, filepath.Join(filepath.Dir(f.file), "state"), fleetDoor, fleetAdmin, engineImage, n)
	if err := os.WriteFile(f.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f.begin()
	t.Cleanup(func() {
		f.end(syscall.SIGTERM)
		list, err := m.client.ServiceList(context.Background(), swarm.ServiceListOptions{})
		if err != nil {
			t.Error(err)
		}
		for _, s := range list {
			_ = m.client.ServiceRemove(context.Background(), s.ID)
		}
		if t.Failed() {
			door, _ := os.ReadFile(filepath.Join(filepath.Dir(f.file), "state", "logs", "door.log"))
			t.Log(f.log.String(), string(door))
		}
	})
	f.until(n, "all are ready", func([]member) bool { return true })
	return f
}

func (f *fleet) begin() {
	f.up = f.node.command(filepath.Join(programs(f.t), "roundhouse"), "up", "-c", f.file)
	f.up.Env = append(os.Environ(), "DOCKER_HOST="+f.node.host.URL)
	f.up.Stdout, f.up.Stderr = &f.log, &f.log
	if err := f.up.Start(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) end(how syscall.Signal) {
	_ = f.up.Process.Signal(how)
	_ = f.up.Wait()
}

// member is one worker as the admin API shows it.
type member struct {
	Name       string
	State      string
	Generation int
	URL        string
	Place      struct{ Node string }
}

func (f *fleet) members() []member {
	res, err := f.node.http().Get("http://" + fleetAdmin + "/api/workers")
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	var v struct{ Workers []member }
	if json.NewDecoder(res.Body).Decode(&v) != nil {
		return nil
	}
	return v.Workers
}

// until waits until n workers are ready and as a test wants them.
func (f *fleet) until(n int, what string, ok func([]member) bool) []member {
	f.t.Helper()
	var all []member
	limit := patience.For(drivertest.Patience)
	for {
		all = f.members()
		ready := slices.DeleteFunc(slices.Clone(all), func(m member) bool { return m.State != "ready" })
		if len(ready) == n && ok(ready) {
			return ready
		}
		if limit.Over() {
			f.t.Fatalf("%s: not within %v: %+v\n%s", what, drivertest.Patience, all, f.log.String())
		}
		<-time.After(50 * time.Millisecond)
	}
}

func (f *fleet) roundhouse(args ...string) string {
	f.t.Helper()
	out, err := f.node.command(append([]string{filepath.Join(programs(f.t), "roundhouse")}, append(args, "--admin", fleetAdmin)...)...).CombinedOutput()
	if err != nil {
		f.t.Fatalf("%v: %v\n%s\n%s", args, err, out, f.log.String())
	}
	return string(out)
}

// under keeps streams of checkable answers going while something is done: each must
// be to the letter what it was in peace. It returns how many there were.
func (f *fleet) under(streams int, do func()) int64 {
	f.t.Helper()
	if f.want == nil {
		for i := range 4 {
			text, err := f.count(10 * i)
			if err != nil {
				f.t.Fatal(err)
			}
			f.want = append(f.want, text)
		}
	}
	want := f.want
	var ending atomic.Bool
	var answers atomic.Int64
	var all sync.WaitGroup
	for i := range streams {
		all.Go(func() {
			for k := i; !ending.Load(); k++ {
				began := time.Now()
				got, err := f.count(10 * (k % len(want)))
				if err != nil || got != want[k%len(want)] {
					f.t.Errorf("lost after %v: %v; got %q, want %q", time.Since(began), err, got, want[k%len(want)])
					return
				}
				answers.Add(1)
			}
		})
	}
	do()
	ending.Store(true)
	all.Wait()
	return answers.Load()
}

// count asks for twelve numbers as a stream and returns its text.
func (f *fleet) count(from int) (string, error) {
	body := fmt.Sprintf(`{"model":"roundhouse-demo","stream":true,"temperature":0,"max_tokens":600,"messages":[{"role":"user","content":"Count from %d to %d by 1."}]}`, from+1, from+12)
	res, err := f.node.http().Post("http://"+fleetDoor+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		return "", fmt.Errorf("%s: %s", res.Status, text)
	}
	text, done := "", false
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		var e struct {
			Error   *struct{ Message string }
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Error != nil {
			return text, fmt.Errorf("%v in %s", err, data)
		}
		for _, c := range e.Choices {
			text += c.Delta.Content
		}
	}
	if !done {
		return text, errors.Join(errors.New("cut"), lines.Err())
	}
	return text, nil
}

// at is how many workers are reached at a node.
func at(n *node, now []member) (count int) {
	for _, m := range now {
		if strings.HasPrefix(m.URL, "http://"+n.address+":") {
			count++
		}
	}
	return count
}

// A fleet of two machines under streams of checkable answers: one is drained by Swarm's
// own hand; all workers are rotated; one is killed; the supervisor is killed and
// succeeded; and a machine dies without a word. Nothing is ever lost, and nothing is
// restarted that was well.
func TestFleet(t *testing.T) {
	managerFor(t).pack(t)
	a, b := workerFor(t)
	a.carry(t, b, engineImage)
	f := fleetFor(t, 3)
	phase := func(what string, do func()) {
		t.Helper()
		began := time.Now()
		n := f.under(12, do)
		t.Logf("%s: %d answers in %v, 0 lost", what, n, time.Since(began).Round(100*time.Millisecond))
	}
	f.until(3, "some are at each node", func(now []member) bool { return at(b, now)%3 > 0 })
	phase("a node is drained", func() {
		b.available(t, swarm.NodeAvailabilityDrain)
		f.until(3, "all are at the other node", func(now []member) bool { return at(b, now) == 0 })
	})
	b.available(t, swarm.NodeAvailabilityActive)
	var turned, before []member
	phase("all are rotated", func() {
		f.roundhouse("rotate", "chat")
		turned = f.until(3, "some are at the node again", func(now []member) bool { return at(b, now) > 0 })
	})
	phase("a worker is killed", func() {
		list, err := b.client.ContainerList(t.Context(), container.ListOptions{})
		if err != nil || len(list) == 0 {
			t.Fatal(list, err)
		}
		if err := b.client.ContainerKill(t.Context(), list[0].ID, "KILL"); err != nil {
			t.Fatal(err)
		}
		before = f.until(3, "it is back", func(now []member) bool { return fmt.Sprint(now) != fmt.Sprint(turned) })
	})
	phase("the supervisor is killed and succeeded", func() {
		f.end(syscall.SIGKILL)
		f.begin()
		f.until(3, "all are found again", func(now []member) bool { return fmt.Sprint(now) == fmt.Sprint(before) })
	})
	if log := f.roundhouse("logs", "chat/1"); !strings.Contains(log, "model loaded") {
		t.Errorf("the worker's log:\n%s", log)
	}
	phase("a node dies", func() {
		b.die(t)
		f.until(3, "all are at the node that lives", func(now []member) bool { return at(b, now) == 0 })
	})
	if events := f.roundhouse("events", "--json"); !strings.Contains(events, "is drained; it drains") || !strings.Contains(events, "is lost; it drains") {
		t.Errorf("the events do not say why workers left:\n%s", events)
	}
}
