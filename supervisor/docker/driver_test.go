package docker

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/driver/drivertest"
	"roundhouse/test/ports"
)

// A container's life: started, found by its labels, reached, its output read,
// replaced by the next generation, ended.
func TestLife(t *testing.T) {
	_, d := driverFor(t)
	if err := d.Start(t.Context(), specFor("1", 1)); err != nil {
		t.Fatal(err)
	}
	i := drivertest.Only(t, d)
	if i.ID != "pool/1" || i.Generation != 1 || i.Hash != "h" || !i.Running || i.PID == 0 || i.URL == "" {
		t.Fatalf("%+v", i)
	}
	drivertest.Until(t, "it answers", func() bool { return healthy(i.URL) })
	full, err := d.engine.ContainerInspect(t.Context(), i.Container)
	if err != nil {
		t.Fatal(err)
	}
	if full.Name != "/roundhouse-pool-1" || full.HostConfig.Privileged || full.HostConfig.ShmSize != 64<<20 || full.HostConfig.RestartPolicy.Name != "no" {
		t.Errorf("made as %s %+v", full.Name, full.HostConfig)
	}
	r, err := d.Logs(t.Context(), "pool/1", driver.LogOptions{Tail: 5})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	r.Close()
	if err != nil || !strings.Contains(string(text), "worker fake") {
		t.Errorf("its output: %q %v", text, err)
	}
	if err := d.Start(t.Context(), specFor("1", 2)); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("a second start: %v", err)
	}
	if err := d.Stop(t.Context(), "pool/1", 1, time.Minute); err != nil {
		t.Fatal(err)
	}
	if i := drivertest.Only(t, d); i.Running || i.Ended != "exit status 0" || !i.Released {
		t.Errorf("after its stop: %+v", i)
	}
	if err := d.Stop(t.Context(), "pool/1", 1, time.Minute); err != nil {
		t.Errorf("a second stop: %v", err)
	}
	if err := d.Start(t.Context(), specFor("1", 2)); err != nil {
		t.Fatal(err)
	}
	if i := drivertest.Only(t, d); i.Generation != 2 || !i.Running {
		t.Errorf("the next generation: %+v", i)
	}
}

// §6.10: an image that is missing is an error with its name, and nothing else.
func TestImageMissing(t *testing.T) {
	_, d := driverFor(t)
	spec := specFor("1", 1)
	spec.Container.Image = "roundhouse-no-such-image:1"
	err := d.Start(t.Context(), spec)
	if err == nil || !strings.Contains(err.Error(), "roundhouse-no-such-image:1") {
		t.Errorf("got %v", err)
	}
	if list, err := d.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("left %v %v", list, err)
	}
}

// A name that a stranger has: an error, and the stranger is as it was.
func TestNameTaken(t *testing.T) {
	l, d := driverFor(t)
	id := l.stranger(t, "rh-taken", false)
	err := d.Start(t.Context(), specFor("rh-taken", 1))
	if err == nil || !strings.Contains(err.Error(), "not ours") {
		t.Errorf("got %v", err)
	}
	if err := d.Stop(t.Context(), "pool/rh-taken", 1, time.Second); err != nil {
		t.Error(err)
	}
	c, err := l.client.ContainerInspect(t.Context(), id)
	if err != nil || !c.State.Running {
		t.Errorf("the stranger: %+v %v", c.State, err)
	}
}

// §J.122: a start that the engine refuses leaves no container behind.
func TestStartRefused(t *testing.T) {
	_, d := driverFor(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	spec := specFor("1", 1)
	spec.Port = l.Addr().(*net.TCPAddr).Port
	if err := d.Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), strconv.Itoa(spec.Port)) {
		t.Errorf("got %v", err)
	}
	if list, err := d.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("left %v %v", list, err)
	}
}

// A container that ends by itself, and one removed by hand, are seen at once.
func TestEndsSeen(t *testing.T) {
	_, d := driverFor(t)
	spec := specFor("1", 1)
	spec.Engine.Args = []string{"--exit", "3"}
	if err := d.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	drivertest.Until(t, "its end is seen", func() bool { return drivertest.Only(t, d).Ended == "exit status 3" })
	if err := d.Start(t.Context(), specFor("1", 2)); err != nil {
		t.Fatal(err)
	}
	for len(d.Changed()) > 0 {
		<-d.Changed()
	}
	if err := d.engine.ContainerRemove(t.Context(), "roundhouse-pool-1", container.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	drivertest.Hear(t, "its removal", d)
	if list, err := d.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("after its removal: %v %v", list, err)
	}
}

// A takeover is served as it is; its first stop takes its restart policy, its
// first start its name, and it is kept.
func TestTakeover(t *testing.T) {
	l, d := driverFor(t)
	port := ports.Free(t)
	id := l.stranger(t, "rh-old", true, "--port", strconv.Itoa(port))
	spec := specFor("rh-old", 2)
	spec.Port, spec.Takeover, spec.Container.NetworkMode = port, "rh-old", hostNetwork()
	d.Expect([]driver.Spec{spec})
	i := drivertest.Only(t, d)
	if !i.TakenOver || !i.Running || i.Generation != 1 || i.URL != "http://127.0.0.1:"+strconv.Itoa(port) {
		t.Fatalf("%+v", i)
	}
	drivertest.Until(t, "the old one answers", func() bool { return healthy(i.URL) })
	if err := d.Stop(t.Context(), "pool/rh-old", 1, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if i := drivertest.Only(t, d); i.TakenOver || i.Generation != 2 {
		t.Errorf("after its turn: %+v", i)
	}
	drivertest.Until(t, "the new one answers", func() bool { return healthy(i.URL) })
	old, err := l.client.ContainerInspect(t.Context(), id)
	if err != nil || old.Name != "/rh-old-before-roundhouse" || old.State.Running {
		t.Errorf("the old one: %v %v", old.Name, err)
	}
}

// §6.8 and J.124: while the engine is away nothing is known; when it is back
// everything is found again.
func TestEngineRestarted(t *testing.T) {
	l, d := driverFor(t)
	if l.daemon == nil {
		t.Skip("the Docker engine that answers here is not the tests' to restart")
	}
	if err := d.Start(t.Context(), specFor("1", 1)); err != nil {
		t.Fatal(err)
	}
	l.stop()
	if _, err := d.List(t.Context()); err == nil {
		t.Error("an engine that is away has answered")
	}
	l.start(t)
	for len(d.Changed()) > 0 {
		<-d.Changed()
	}
	drivertest.Until(t, "it is found, and has ended with its engine", func() bool {
		list, err := d.List(t.Context())
		return err == nil && len(list) == 1 && list[0].ID == "pool/1" && !list[0].Running
	})
	if err := d.Start(t.Context(), specFor("1", 2)); err != nil {
		t.Fatal(err)
	}
	drivertest.Hear(t, "events flow again", d)
}

// §J.126: a container of ours that somebody pauses is still there, holds what it held,
// and can be stopped; one that somebody renames is found by its labels, and its
// successor has the right name again.
func TestPausedAndRenamed(t *testing.T) {
	l, d := driverFor(t)
	if err := d.Start(t.Context(), specFor("1", 1)); err != nil {
		t.Fatal(err)
	}
	i := drivertest.Only(t, d)
	drivertest.Until(t, "it answers", func() bool { return healthy(i.URL) })
	if err := l.client.ContainerPause(t.Context(), i.Container); err != nil {
		t.Skipf("this machine pauses no container: %v", err)
	}
	if i := drivertest.Only(t, d); !i.Running || i.Released || i.Ended != "" {
		t.Errorf("paused: %+v", i)
	}
	if err := d.Stop(t.Context(), "pool/1", 1, time.Second); err != nil {
		t.Errorf("stop of what is paused: %v", err)
	}
	drivertest.Until(t, "it has ended", func() bool { return !drivertest.Only(t, d).Running })
	if err := d.Start(t.Context(), specFor("1", 2)); err != nil {
		t.Fatal(err)
	}
	if err := l.client.ContainerRename(t.Context(), "roundhouse-pool-1", "rh-somewhere-else"); err != nil {
		t.Fatal(err)
	}
	if i := drivertest.Only(t, d); i.ID != "pool/1" || i.Generation != 2 || !i.Running {
		t.Errorf("renamed: %+v", i)
	}
	if err := d.Stop(t.Context(), "pool/1", 2, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context(), specFor("1", 3)); err != nil {
		t.Fatal(err)
	}
	i = drivertest.Only(t, d)
	if c, err := l.client.ContainerInspect(t.Context(), i.Container); err != nil || c.Name != "/roundhouse-pool-1" || i.Generation != 3 {
		t.Errorf("its successor: %s %+v %v", c.Name, i, err)
	}
}
