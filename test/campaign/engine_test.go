//go:build docker

package campaign

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	docker "github.com/docker/docker/client"
	"golang.org/x/sys/unix"

	"roundhouse/supervisor/driver/drivertest"
	"roundhouse/supervisor/moby"
	"roundhouse/test/program"
	"roundhouse/test/system"
)

const twoContainers = `
log {
  access = false
}

pool "chat" {
  driver      = "docker"
  devices     = "cpu"
  workers     = 2
  image       = "campaign-worker:1"
  pull_policy = "never"
  engine {
    served_model_name = ["roundhouse-demo"]
  }
  rotation {
    drain_timeout = "5s"
    stop_grace    = "10s"
  }
}
`

// alone are the programs as an image holds them that has nothing else: without the
// loader that a device's libraries need.
var alone = program.Set{Flags: []string{"-tags", "noxpu"}}

// dockerd is an engine of the test's own, which it may kill.
type dockerd struct {
	t    *testing.T
	dir  string
	host moby.Host
	net  []string // flags
	cmd  *exec.Cmd
}

func newDockerd(t *testing.T) *dockerd {
	t.Helper()
	if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
		t.Skip("there is no Docker engine to start (dockerd, as root; package docker.io)")
	}
	dir, err := os.MkdirTemp("", "rh-campaign-") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	d := &dockerd{t: t, dir: dir, host: moby.Host{URL: "unix://" + dir + "/docker.sock"}}
	flags, remove := drivertest.Bridge(t)
	t.Cleanup(remove)
	d.net = flags
	d.start()
	t.Cleanup(d.remove)
	return d
}

func (d *dockerd) start() {
	d.t.Helper()
	d.cmd = drivertest.Boot(d.t, d.dir+"/log", func() *exec.Cmd {
		return exec.Command("dockerd", append([]string{"--data-root", d.dir + "/data", "--exec-root", d.dir + "/exec", "--pidfile", d.dir + "/pid", "-H", d.host.URL}, d.net...)...)
	}, func() bool {
		e := d.client()
		defer e.Close()
		_, err := e.Ping(d.t.Context())
		return err == nil
	})
}

// unstarted ends what a killed engine had made and not started yet: no engine knows of it
// afterwards, and its network keeps an address that the next one gives to another container.
func (d *dockerd) unstarted() {
	shims, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, shim := range shims {
		text, _ := os.ReadFile(shim) // it may have ended
		if !strings.Contains(string(text), "containerd-shim") || !strings.Contains(string(text), d.dir+"/") {
			continue
		}
		id := filepath.Base(filepath.Dir(shim))
		children, _ := os.ReadFile(filepath.Join("/proc", id, "task", id, "children"))
		for _, child := range strings.Fields(string(children)) {
			text, _ := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
			if !strings.HasPrefix(string(text), "runc\x00init") {
				continue
			}
			for _, id := range []string{child, id} {
				if pid, err := strconv.Atoi(id); err == nil {
					unix.Kill(pid, unix.SIGKILL)
				}
			}
		}
	}
}

func (d *dockerd) client() *docker.Client {
	e, err := moby.Connect(d.host)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return e
}

// end ends the engine by a signal. What it has written of the process ids of its own and
// its containerd's goes with it, since nobody may be there to reap them.
func (d *dockerd) end(sig syscall.Signal) {
	d.cmd.Process.Signal(sig)
	d.cmd.Wait()
	os.Remove(d.dir + "/exec/containerd/containerd.pid")
	os.Remove(d.dir + "/pid")
}

func (d *dockerd) remove() {
	d.end(syscall.SIGTERM)
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		d.t.Error(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], d.dir+"/") {
			unix.Unmount(fields[1], unix.MNT_DETACH)
		}
	}
	os.RemoveAll(d.dir)
}

// load makes an image of our engine alone.
func (d *dockerd) load(path string) {
	d.t.Helper()
	program, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	e := d.client()
	defer e.Close()
	r, err := e.ImageImport(d.t.Context(), image.ImportSource{Source: bytes.NewReader(drivertest.Layer(d.t, "worker", program)), SourceName: "-"},
		"campaign-worker:1", image.ImportOptions{Changes: []string{`ENTRYPOINT ["/worker", "serve"]`}})
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Close()
	if out, err := io.ReadAll(r); err != nil || bytes.Contains(out, []byte(`"error"`)) {
		d.t.Fatal(err, string(out))
	}
}

// engineFaults are what can befall a pool of containers. An engine takes all of them
// with it: requests wait for those that it starts again.
func engineFaults(d *dockerd) []fault {
	restart := func(s *trial, sig syscall.Signal, supervisor bool) {
		for _, w := range s.Workers() {
			s.ended[w.ID] = w.Place.PID
		}
		s.c.both.Store(true) // a request that was at both is answered 500: nobody knows that it has not ended them
		if supervisor {
			s.Kill()
		}
		d.end(sig)
		<-time.After(time.Second)
		d.unstarted()
		d.start()
		if supervisor {
			s.Up()
		}
		s.Until("the engine's workers are back", s.settled)
		s.c.both.Store(false)
	}
	remove := func(s *trial) {
		e := d.client()
		defer e.Close()
		w := s.oneOf()
		s.ended[w.ID] = w.Place.PID
		if err := e.ContainerRemove(s.t.Context(), "roundhouse-chat-"+strings.TrimPrefix(w.ID, "chat/"), container.RemoveOptions{Force: true}); err != nil && !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err) {
			s.t.Error(err) // others say that the supervisor, which turns it, was first
		}
	}
	return []fault{
		{name: "no fault of containers", do: func(*trial) {}},
		{name: "a container killed", do: func(s *trial) { s.signal(syscall.SIGKILL) }},
		{name: "a container removed", do: remove},
		{name: "the supervisor of containers killed", do: func(s *trial) { s.Kill(); s.Up() }},
		{name: "the door of containers killed", do: killDoor},
		{name: "the engine stopped for a while", do: func(s *trial) {
			d.cmd.Process.Signal(syscall.SIGSTOP)
			<-time.After(time.Duration(s.r.IntN(3000)) * time.Millisecond)
			d.cmd.Process.Signal(syscall.SIGCONT)
		}},
		{name: "the engine killed", do: func(s *trial) { restart(s, syscall.SIGKILL, false) }},
		{name: "the engine ended", do: func(s *trial) { restart(s, syscall.SIGTERM, false) }},
		{name: "the engine and the supervisor killed", ends: true, do: func(s *trial) { restart(s, syscall.SIGKILL, true) }},
	}
}

// TestEngineFaults is TestRotations for containers, whose engine is killed as well.
func TestEngineFaults(t *testing.T) {
	t.Parallel()
	t.Cleanup(alone.Remove)
	d := newDockerd(t)
	d.load(alone.Path(t, "roundhouse-worker"))
	s := newTrial(t, "containers", alone.Path(t, "roundhouse"), 2)
	t.Logf("seed %d", *seed)
	s.faults = engineFaults(d)
	s.System = system.Start(t, after(t, "export DOCKER_HOST="+d.host.URL, s.binary), patient+"  queue {\n    max_wait = \"10m\"\n  }", twoContainers)
	course := newCourse()
	s.run(course, 3)
	course.report(t)
}
