//go:build docker

package swarm

import (
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"roundhouse/configs"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/driver/drivertest"
	"roundhouse/supervisor/moby"
)

// A service's life: started, found by its labels, reached, its output read, replaced
// by the next generation, ended; and found again by a driver that knows nothing yet.
func TestLife(t *testing.T) {
	n, d := driverFor(t)
	if err := d.Start(t.Context(), specFor("1", 1)); err != nil {
		t.Fatal(err)
	}
	i := drivertest.Only(t, d)
	if i.ID != "pool/1" || i.Generation != 1 || i.Hash != "h" || !i.Running || i.Container == "" || i.Node == "" || i.Image != testImage || i.Leaving != "" {
		t.Fatalf("%+v", i)
	}
	if !strings.HasPrefix(i.URL, "http://10.97.0.1:") {
		t.Fatalf("its address is %q", i.URL)
	}
	drivertest.Until(t, "it answers", func() bool { return n.healthy(i.URL) })
	r, err := d.Logs(t.Context(), "pool/1", driver.LogOptions{Tail: 5})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	r.Close()
	if err != nil || !strings.Contains(string(text), "worker fake") {
		t.Errorf("its output: %q %v", text, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	follow, err := d.Logs(ctx, "pool/1", driver.LogOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(follow, make([]byte, len("worker fake"))); err != nil {
		t.Errorf("its output as it comes: %v", err)
	}
	cancel()
	if more, err := io.ReadAll(follow); err == nil {
		t.Errorf("what follows its output ends as if it were whole: %q", more)
	}
	follow.Close()
	if err := d.Start(t.Context(), specFor("1", 2)); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("a second start: %v", err)
	}
	if again, err := New(n.host, d.instance, false); err != nil {
		t.Error(err)
	} else {
		if found := drivertest.Only(t, again); !reflect.DeepEqual(found, i) {
			t.Errorf("another driver finds %+v; want %+v", found, i)
		}
		again.Close()
	}
	for len(d.Changed()) > 0 {
		<-d.Changed()
	}
	if err := d.Stop(t.Context(), "pool/1", 1, time.Minute); err != nil {
		t.Fatal(err)
	}
	drivertest.Hear(t, "its end", d)
	if i := drivertest.Only(t, d); i.Running || !i.Released || i.Generation != 1 {
		t.Errorf("after its stop: %+v", i)
	}
	if n.healthy(i.URL) {
		t.Error("it answers although it was stopped")
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

// What cannot start says why in Swarm's own words, and leaves nothing behind.
func TestNoPlace(t *testing.T) {
	n, d := driverFor(t)
	f := func(change func(*driver.Spec), want string) {
		t.Helper()
		spec := specFor("1", 1)
		change(&spec)
		err := d.Start(t.Context(), spec)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
		if list, err := d.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("left %+v %v", list, err)
		}
	}
	f(func(s *driver.Spec) { s.Container.GenericResources = map[string]int64{"SLOT": 9} }, "no suitable node (insufficient resources on 1 node)")
	f(func(s *driver.Spec) { s.Container.Volumes = []string{"/no/such/folder:/models"} }, "/no/such/folder")
	f(func(s *driver.Spec) { s.Container.Image = "roundhouse-no-such-image:1" }, "roundhouse-no-such-image:1 is not at this manager")
	f(func(s *driver.Spec) { s.Container.Networks = []string{"rh-no-such"} }, "rh-no-such not found")
	f(func(s *driver.Spec) { s.Container.Entrypoint = []string{"/no/such/program"} }, "/no/such/program")

	prepare := func(change func(*driver.Spec), want string) {
		t.Helper()
		spec := specFor("1", 1)
		change(&spec)
		if err := d.Prepare(t.Context(), spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("prepared with %v; want %q", err, want)
		}
	}
	prepare(func(s *driver.Spec) { s.Container.Constraints = []string{"node.role == worker"} }, "none of the 1 nodes that take tasks, of 1, has node.role == worker")
	prepare(func(s *driver.Spec) { s.Container.GenericResources = map[string]int64{"NVIDIA-GPU": 1} }, "1 NVIDIA-GPU")
	prepare(func(s *driver.Spec) { s.Container.Networks = []string{"bridge"} }, "takes an overlay network")
	if err := d.Prepare(t.Context(), specFor("1", 1)); err != nil {
		t.Errorf("what fits: %v", err)
	}

	said := ""
	for _, f := range Check(t.Context(), n.host, []configs.Pool{
		{Name: "a", Driver: "swarm", Container: configs.Container{Networks: []string{"bridge", "rh-none"}}},
		{Name: "b", Driver: "swarm", Container: configs.Container{Constraints: []string{"node.role == worker"}}},
		{Name: "c", Driver: "docker"},
	}) {
		said += f.State + " " + f.Text + "\n"
	}
	for _, want := range []string{
		"ok 1 of 1 nodes are ready, 1 of them managers\n", "ok pool a: a node fits\n", "fail pool a: the network \"bridge\" is this machine's alone", "fail pool a: there is no network \"rh-none\"",
		"fail pool b: none of the 1 nodes that take tasks, of 1, has node.role == worker\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("doctor does not say %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "pool c") {
		t.Errorf("doctor says of a pool that is in no Swarm:\n%s", said)
	}
}

// A service that ends by itself, one removed by hand, and one of a stranger's.
func TestEndsSeen(t *testing.T) {
	n, d := driverFor(t)
	spec := specFor("1", 1)
	spec.Engine.Args = []string{"--exit", "3"}
	if err := d.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	drivertest.Until(t, "its end is seen", func() bool { return drivertest.Only(t, d).Ended == "exit status 3" })
	if err := d.Start(t.Context(), specFor("1", 2)); err != nil {
		t.Fatal(err)
	}
	i := drivertest.Only(t, d)
	if err := n.client.ContainerKill(t.Context(), i.Container, "KILL"); err != nil {
		t.Fatal(err)
	}
	drivertest.Until(t, "it is seen to have been killed", func() bool {
		i := drivertest.Only(t, d)
		return !i.Running && i.Killed && i.Ended == "exit status 137 (signal 9)"
	})
	if err := d.Start(t.Context(), specFor("1", 3)); err != nil {
		t.Fatal(err)
	}
	if err := n.client.ServiceRemove(t.Context(), "roundhouse-pool-1"); err != nil {
		t.Fatal(err)
	}
	drivertest.Until(t, "its removal is seen", func() bool { list, err := d.List(t.Context()); return err == nil && len(list) == 0 })

	stranger := specFor("rh-taken", 1)
	plan, err := d.plan(stranger, testImage)
	if err != nil {
		t.Fatal(err)
	}
	plan.Labels = nil
	made, err := n.client.ServiceCreate(t.Context(), plan, swarm.ServiceCreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.client.ServiceRemove(context.WithoutCancel(t.Context()), made.ID)
	if err := d.Start(t.Context(), stranger); err == nil || !strings.Contains(err.Error(), "not ours") {
		t.Errorf("a name that a stranger has: %v", err)
	}
}

// What an operator has Swarm put in a task's place is no generation of ours: the
// worker counts as ended, and its next start leaves one task alone.
func TestReplacedBySwarm(t *testing.T) {
	n, d := driverFor(t)
	if err := d.Start(t.Context(), specFor("1", 1)); err != nil {
		t.Fatal(err)
	}
	drivertest.Until(t, "Swarm is told to replace it", func() bool {
		s, _, err := n.client.ServiceInspectWithRaw(t.Context(), "roundhouse-pool-1", swarm.ServiceInspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.Spec.TaskTemplate.ForceUpdate++
		_, err = n.client.ServiceUpdate(t.Context(), s.ID, s.Version, s.Spec, swarm.ServiceUpdateOptions{})
		if err != nil && !outOfSequence(err) {
			t.Fatal(err)
		}
		return err == nil // else Swarm itself has changed the service meanwhile
	})
	drivertest.Until(t, "it counts as ended", func() bool { return strings.Contains(drivertest.Only(t, d).Ended, "told to replace its task") })
	startAtLast(t, d, specFor("1", 2))
	list, err := d.ours(t.Context(), "pool/1")
	if err != nil || len(list) != 1 || len(list[0].live()) != 1 || list[0].Spec.Labels[moby.LabelGeneration] != "2" {
		t.Errorf("%+v %v", list, err)
	}
}

// An engine that is no manager is told in one sentence, at once.
func TestNoManager(t *testing.T) {
	managerFor(t)
	b := nodes.worker
	if b.daemon == nil {
		b.start(t)
	}
	if _, err := New(b.host, "x", false); err == nil || !strings.Contains(err.Error(), "is no manager of a Swarm") || !strings.Contains(err.Error(), "docker swarm init") {
		t.Errorf("got %v", err)
	}
	for _, f := range Check(t.Context(), b.host, nil) {
		if f.State != "fail" || !strings.Contains(f.Text+f.Action, "docker swarm init") {
			t.Errorf("doctor says %+v", f)
		}
	}
}

// While the manager's engine is away nothing is known and nothing fails for good; when
// it is back everything is found again, and a start leaves one task alone.
func TestManagerAway(t *testing.T) {
	m, d := driverFor(t)
	if err := d.Start(t.Context(), specFor("1", 1)); err != nil {
		t.Fatal(err)
	}
	if err := m.daemon.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = m.daemon.Wait()
	if _, err := d.List(t.Context()); !errors.Is(err, driver.ErrAway) {
		t.Errorf("List: %v", err)
	}
	if err := d.Start(t.Context(), specFor("1", 2)); !errors.Is(err, driver.ErrAway) {
		t.Errorf("Start: %v", err)
	}
	if err := d.Prepare(t.Context(), specFor("1", 2)); !errors.Is(err, driver.ErrAway) {
		t.Errorf("Prepare: %v", err)
	}
	if err := d.Stop(t.Context(), "pool/1", 1, time.Second); !errors.Is(err, driver.ErrAway) {
		t.Errorf("Stop: %v", err)
	}
	for len(d.Changed()) > 0 {
		<-d.Changed()
	}
	m.start(t)
	drivertest.Hear(t, "the manager's return", d)
	drivertest.Until(t, "it is found, and has ended with its engine", func() bool {
		list, err := d.List(t.Context())
		return err == nil && len(list) == 1 && list[0].ID == "pool/1" && !list[0].Running
	})
	if err := d.Start(t.Context(), specFor("1", 2)); err != nil {
		t.Fatal(err)
	}
	if list, err := d.ours(t.Context(), "pool/1"); err != nil || len(list) != 1 || len(list[0].live()) != 1 {
		t.Errorf("%+v %v", list, err)
	}
}
