package docker

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"roundhouse/supervisor/driver/drivertest"
	"roundhouse/supervisor/moby"
	"roundhouse/test/ports"
)

// poolOf is a pool block of two workers of the test image on the host's network, where
// the engine has it.
func poolOf(name, image, more string) string {
	return fmt.Sprintf(`
pool %q {
  driver       = "docker"
  devices      = "cpu"
  workers      = 2
  image        = %q
  pull_policy  = "never"
  network_mode = %q
  engine {
    served_model_name = ["fake"]
  }
  rotation {
    drain_timeout = "10s"
    stop_grace    = "2s"
    ready_timeout = "5m"
  }
  %s
}
`, name, image, hostNetwork(), more)
}

// reload puts a pool block in force.
func (h *house) reload(pool string) {
	h.t.Helper()
	h.write(pool)
	if out, err := h.run("reload"); err != nil {
		h.t.Fatal(err, out)
	}
}

// rolled waits until a configuration that cannot work is given up, and both
// workers serve as before.
func (h *house) rolled(want string) {
	h.t.Helper()
	drivertest.Until(h.t, "the rotation ends with: "+want, func() bool {
		r := h.rotation()
		return strings.Contains(r, want) && !strings.HasPrefix(r, "running")
	})
	drivertest.Until(h.t, "both serve", func() bool { return strings.Count(h.states(), "ready") == 2 })
}

// §6.10, §6.11, §6.12 and J.122 with real containers: a configuration that cannot work
// reaches one worker at most, which goes back, while every request is answered.
func TestBadConfigurations(t *testing.T) {
	engineFor(t)
	for _, c := range []struct{ name, image, more, want string }{
		{"missing", "roundhouse-no-such-image:1", "", "roundhouse-no-such-image:1"},
		{"wrong", testImage, `environment = { FAKE_MODEL = "another" }`, "another"},
		{"sick", testImage, `command = ["--delay", "1h"]`, "ready_timeout"},
		{"ending", testImage, `command = ["--exit", "3"]`, "exit status 3"},
		{"starting", testImage, `entrypoint = ["/no/such/program"]`, "/no/such/program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := houseFor(t, c.name, poolOf(c.name, testImage, ""))
			h.until("1 ready 1 ready")
			stop := h.load()
			block := poolOf(c.name, c.image, c.more)
			if strings.Contains(c.more, "command") { // beside which an engine block would be ignored
				block = strings.Replace(block, "  engine {\n    served_model_name = [\"fake\"]\n  }\n", "", 1)
			}
			if c.name == "sick" {
				block = strings.Replace(block, `"5m"`, `"8s"`, 1)
			}
			h.reload(block)
			h.rolled(c.want)
			t.Logf("%s; %d answers meanwhile, none lost", h.rotation(), stop())
		})
	}
}

// A container removed by hand, and one killed, are replaced at once, and nobody
// who asked is told.
func TestRemovedByHand(t *testing.T) {
	h := houseFor(t, "byhand", poolOf("byhand", testImage, ""))
	h.until("1 ready 1 ready")
	stop := h.load()
	if err := h.lab.client.ContainerRemove(t.Context(), "roundhouse-byhand-1", container.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	h.until("2 ready 1 ready")
	if err := h.lab.client.ContainerKill(t.Context(), "roundhouse-byhand-2", "KILL"); err != nil {
		t.Fatal(err)
	}
	h.until("2 ready 2 ready")
	t.Logf("%d answers, 0 lost", stop())
}

// A stranger who has the name of a worker's container is left alone, and the
// worker says so; the other one serves.
func TestNameTakenByStranger(t *testing.T) {
	l := engineFor(t)
	h := houseFor(t, "taken", poolOf("taken", testImage, ""))
	h.until("1 ready 1 ready")
	if err := l.client.ContainerRemove(t.Context(), "roundhouse-taken-1", container.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	id := ""
	drivertest.Until(t, "the stranger gets the name", func() bool {
		made, err := l.client.ContainerCreate(t.Context(), &container.Config{Image: testImage, Cmd: []string{"--port", fmt.Sprint(ports.Free(t))}}, &container.HostConfig{NetworkMode: container.NetworkMode(hostNetwork())}, nil, nil, "roundhouse-taken-1")
		if err != nil { // the supervisor was quicker
			_ = l.client.ContainerRemove(t.Context(), "roundhouse-taken-1", container.RemoveOptions{Force: true})
			return false
		}
		id = made.ID
		return true
	})
	t.Cleanup(func() {
		if err := l.client.ContainerRemove(context.Background(), id, container.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	if err := l.client.ContainerStart(t.Context(), id, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	drivertest.Until(t, "the worker says why", func() bool {
		w := h.workers()
		return len(w) == 2 && strings.Contains(w[0].LastError+w[0].Reason, "not ours")
	})
	if err := h.ask(); err != nil {
		t.Error(err)
	}
	c, err := l.client.ContainerInspect(t.Context(), id)
	if err != nil || !c.State.Running || c.Name != "/roundhouse-taken-1" {
		t.Errorf("the stranger: %+v %v", c.State, err)
	}
}

// amid ends the engine in the middle of a rotation, with its first worker's turn begun.
// One that was over by then, because this test came too late, is not what is meant, and
// there is another.
func (h *house) amid(end func()) {
	h.t.Helper()
	first := func() int {
		if w := h.workers(); len(w) > 0 {
			return w[0].Generation
		}
		return 0
	}
	for {
		before := 0
		drivertest.Until(h.t, "a worker is seen", func() bool { before = first(); return before > 0 })
		if out, err := h.run("rotate", "amid", "--no-wait"); err != nil {
			h.t.Fatal(err, out)
		}
		drivertest.Until(h.t, "the rotation is under way", func() bool { return first() > before })
		end()
		if strings.HasPrefix(h.rotation(), "running") {
			return
		}
		h.t.Logf("the rotation was %q before the engine had ended; another", h.rotation())
		h.lab.start(h.t)
		drivertest.Until(h.t, "both serve again", func() bool { return strings.Count(h.states(), "ready") == 2 && h.ask() == nil })
	}
}

// §6.8: the engine restarts in the middle of a rotation, told to or killed, and takes
// every container with it. The rotation waits, says for what, and goes on by itself;
// all are there again, once, and none counts as crashed.
func TestEngineRestartedInRotation(t *testing.T) {
	l := engineFor(t)
	if l.daemon == nil {
		t.Skip("the Docker engine that answers here is not the tests' to restart")
	}
	h := houseFor(t, "amid", poolOf("amid", testImage, ""))
	h.until("1 ready 1 ready")
	for i, end := range []func(){l.stop, l.kill} {
		h.amid(end)
		drivertest.Until(t, "it waits for the engine, and says so", func() bool {
			out, err := h.run("rotate", "amid", "--status")
			return err == nil && strings.Contains(out, "its driver does not answer")
		})
		l.start(t)
		drivertest.Until(t, "the rotation has ended", func() bool { return !strings.HasPrefix(h.rotation(), "running") })
		if r := h.rotation(); r != "done: " {
			t.Errorf("restart %d: the rotation is %s", i, r)
		}
		drivertest.Until(t, "both serve again", func() bool { return strings.Count(h.states(), "ready") == 2 && h.ask() == nil })
	}
	out, err := h.run("events", "--json")
	if err != nil || !strings.Contains(out, "docker answers again after") || !strings.Contains(out, "halts at") || strings.Contains(out, `"crashed"`) || strings.Contains(out, `"failed"`) {
		t.Errorf("events: %v\n%s", err, out)
	}
	list, err := l.client.ContainerList(t.Context(), container.ListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range list {
		if c.Labels[moby.LabelPool] == "amid" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d containers of the pool; want 2", n)
	}
}

// A container that takes more memory than it may is killed, and seen to have
// been killed for that; what it held before was seen as well.
func TestOutOfMemory(t *testing.T) {
	l, d := driverFor(t)
	if err := d.agree(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !d.can().Measures {
		t.Skip("this engine has no control groups: it neither limits memory nor tells of it")
	}
	if err := d.Start(t.Context(), specFor("1", 1)); err != nil {
		t.Fatal(err)
	}
	i := drivertest.Only(t, d)
	drivertest.Until(t, "it answers", func() bool { return healthy(i.URL) })
	drivertest.Until(t, "what it holds is told", func() bool {
		held := drivertest.Only(t, d).Memory
		return held > 0 && held < 1<<30
	})
	limit := container.UpdateConfig{Resources: container.Resources{Memory: 64 << 20, MemorySwap: 64 << 20}}
	if _, err := l.client.ContainerUpdate(t.Context(), i.Container, limit); err != nil {
		t.Skipf("this machine limits no memory: %v", err)
	}
	go func() {
		if res, err := http.Get(i.URL + "/eat"); err == nil { // the connection breaks with the worker
			res.Body.Close()
		}
	}()
	drivertest.Until(t, "it is killed", func() bool { return drivertest.Only(t, d).OOM })
	if i := drivertest.Only(t, d); !strings.Contains(i.Ended, "out of memory") {
		t.Errorf("it ended with %q", i.Ended)
	}
}

// §6.8 with live-restore: an engine that leaves its containers running restarts under
// load. Nobody who asks notices, no worker is started anew, and it rotates afterwards.
func TestEngineRestartedAndWorkersLive(t *testing.T) {
	l := engineFor(t)
	if l.daemon == nil {
		t.Skip("the Docker engine that answers here is not the tests' to restart")
	}
	if *rootless {
		t.Skip("a rootless engine takes its network with it, and so leaves no container running")
	}
	again := func(more ...string) {
		l.stop()
		l.more = more
		l.start(t)
	}
	again("--live-restore")
	t.Cleanup(func() { again() }) // once the house is down
	h := houseFor(t, "live", poolOf("live", testImage, ""))
	h.until("1 ready 1 ready")
	stop := h.load()
	l.stop()
	drivertest.Until(t, "its absence is told", func() bool {
		out, err := h.run("events", "--json")
		return err == nil && strings.Contains(out, "docker does not answer")
	})
	l.start(t)
	drivertest.Until(t, "its return is told", func() bool {
		out, err := h.run("events", "--json")
		return err == nil && strings.Contains(out, "docker answers again")
	})
	h.until("1 ready 1 ready")
	if out, err := h.run("rotate", "live"); err != nil {
		t.Error(err, out)
	}
	h.until("2 ready 2 ready")
	t.Logf("%d answers, none lost", stop())
}
