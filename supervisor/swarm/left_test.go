package swarm

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"roundhouse/configs"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
)

// managers are a Swarm of one node that does what it is told: fate is what becomes of
// the task of the next service. While they are away they answer nothing, and what they
// were asked last they may have done.
type managers struct {
	engine
	services []swarm.Service
	tasks    []swarm.Task
	fate     func(*swarm.Task) // nil: no task is made
	away     bool
	cut      bool      // the answer to the next service is lost
	leave    int       // go away after as many looks at the tasks
	settled  time.Time // until then the node is not heard of, and from then on tasks run
	made     int
}

func (m *managers) gone() error {
	if m.away {
		return client.ErrorConnectionFailed("unix:///gone")
	}
	return nil
}

func (m *managers) ImageInspect(context.Context, string, ...client.ImageInspectOption) (image.InspectResponse, error) {
	return image.InspectResponse{ID: "sha256:1"}, m.gone()
}

func (m *managers) NodeList(context.Context, swarm.NodeListOptions) ([]swarm.Node, error) {
	n := swarm.Node{ID: "n1", Status: swarm.NodeStatus{State: swarm.NodeStateReady, Addr: "10.0.0.1"}}
	if time.Now().Before(m.settled) {
		n.Status.State = swarm.NodeStateUnknown
	}
	return []swarm.Node{n}, m.gone()
}

func (m *managers) ServiceList(context.Context, swarm.ServiceListOptions) ([]swarm.Service, error) {
	return slices.Clone(m.services), m.gone()
}

func (m *managers) TaskList(context.Context, swarm.TaskListOptions) ([]swarm.Task, error) {
	err := m.gone()
	if m.leave--; m.leave == 0 {
		m.away = true
	}
	for i := range m.tasks {
		if !m.settled.IsZero() && !time.Now().Before(m.settled) {
			runs(&m.tasks[i])
		}
	}
	return slices.Clone(m.tasks), err
}

func (m *managers) ServiceCreate(_ context.Context, spec swarm.ServiceSpec, _ swarm.ServiceCreateOptions) (swarm.ServiceCreateResponse, error) {
	if err := m.gone(); err != nil {
		return swarm.ServiceCreateResponse{}, err
	}
	for _, s := range m.services {
		if s.Spec.Name == spec.Name {
			return swarm.ServiceCreateResponse{}, cerrdefs.ErrConflict
		}
	}
	m.made++
	id := "s" + strconv.Itoa(m.made)
	m.services = append(m.services, swarm.Service{ID: id, Spec: spec})
	if m.fate != nil {
		t := swarm.Task{ID: "t" + id, ServiceID: id, Slot: 1, DesiredState: swarm.TaskStateRunning, Spec: spec.TaskTemplate}
		m.fate(&t)
		m.tasks = append(m.tasks, t)
	}
	if m.cut {
		m.away = true
		return swarm.ServiceCreateResponse{}, m.gone()
	}
	return swarm.ServiceCreateResponse{ID: id}, nil
}

func (m *managers) find(id string) int {
	return slices.IndexFunc(m.services, func(s swarm.Service) bool { return s.ID == id })
}

func (m *managers) ServiceInspectWithRaw(_ context.Context, id string, _ swarm.ServiceInspectOptions) (swarm.Service, []byte, error) {
	if err := m.gone(); err != nil {
		return swarm.Service{}, nil, err
	}
	if i := m.find(id); i >= 0 {
		return m.services[i], nil, nil
	}
	return swarm.Service{}, nil, cerrdefs.ErrNotFound
}

func (m *managers) ServiceUpdate(_ context.Context, id string, _ swarm.Version, spec swarm.ServiceSpec, _ swarm.ServiceUpdateOptions) (swarm.ServiceUpdateResponse, error) {
	if err := m.gone(); err != nil {
		return swarm.ServiceUpdateResponse{}, err
	}
	m.services[m.find(id)].Spec = spec
	m.endTasks(id)
	return swarm.ServiceUpdateResponse{}, nil
}

func (m *managers) ServiceRemove(_ context.Context, id string) error {
	if err := m.gone(); err != nil {
		return err
	}
	i := m.find(id)
	if i < 0 {
		return cerrdefs.ErrNotFound
	}
	m.services = slices.Delete(m.services, i, i+1)
	m.endTasks(id)
	return nil
}

func (m *managers) endTasks(service string) {
	m.tasks = slices.DeleteFunc(m.tasks, func(t swarm.Task) bool { return t.ServiceID == service })
}

// What may become of a task.
func runs(t *swarm.Task) {
	*t = taskAs(t, taskOf("n1", swarm.TaskStateRunning, swarm.TaskStateRunning))
}

func prepares(t *swarm.Task) {
	*t = taskAs(t, taskOf("n1", swarm.TaskStatePreparing, swarm.TaskStateRunning))
}

func homeless(t *swarm.Task) {
	*t = taskAs(t, taskOf("", swarm.TaskStatePending, swarm.TaskStateRunning))
	t.Status.Err = "no suitable node"
}

func refused(t *swarm.Task) {
	*t = taskAs(t, taskOf("n1", swarm.TaskStateRejected, swarm.TaskStateShutdown))
	t.Status.ContainerStatus, t.Status.Err = nil, "No such image"
}

func failed(t *swarm.Task) {
	*t = taskAs(t, taskOf("n1", swarm.TaskStateFailed, swarm.TaskStateShutdown))
	t.Status.Err = "starting container failed"
}

func taskAs(t *swarm.Task, as swarm.Task) swarm.Task {
	as.ID, as.ServiceID, as.Slot, as.Spec = t.ID, t.ServiceID, t.Slot, t.Spec
	return as
}

// A start that fails halfway while the managers go away, so that its clean-up fails
// too, leaves a service behind. Once they are back the next look finds it by its
// labels: what runs is there to be adopted, and can be stopped; what does not run, its
// successor takes away, and so does Sweep. However it went, one service is left at most.
func TestLeftByAStartThatFailed(t *testing.T) {
	spec := func(generation uint64) driver.Spec {
		return driver.Spec{Pool: "pool", Name: "1", Generation: generation, Hash: "h", Grace: time.Second, Container: configs.Container{Image: "a:1", PullPolicy: "never"}}
	}
	f := func(name string, m *managers, later func(*swarm.Task), running bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			d := &Driver{engine: m, instance: "here", urls: map[string]string{}}
			if err := d.Start(t.Context(), spec(1)); !errors.Is(err, driver.ErrAway) {
				t.Fatalf("%s: its start: %v; want it told that the driver was away", name, err)
			}
			if len(m.services) != 1 {
				t.Fatalf("%s: %d services were left; the test wants one", name, len(m.services))
			}
			if later != nil {
				later(&m.tasks[0])
			}
			m.away, m.cut = false, false
			list, err := d.List(t.Context())
			if err != nil || len(list) != 1 || list[0].ID != "pool/1" || list[0].Generation != 1 || list[0].Hash != "h" || list[0].Running != running {
				t.Fatalf("%s: the next look finds %+v %v", name, list, err)
			}
			swept := *m
			if running {
				if err := d.Stop(t.Context(), "pool/1", 1, time.Second); err != nil {
					t.Errorf("%s: its stop: %v", name, err)
				}
			} else { // what nobody starts again goes at the end
				other := &Driver{engine: &swept, instance: "here", urls: map[string]string{}}
				swept.services, swept.tasks = slices.Clone(m.services), slices.Clone(m.tasks)
				if err := other.Sweep(t.Context()); err != nil || len(swept.services) > 0 {
					t.Errorf("%s: Sweep leaves %d services: %v", name, len(swept.services), err)
				}
			}
			m.fate = runs
			if err := d.Start(t.Context(), spec(2)); err != nil {
				t.Errorf("%s: its successor's start: %v", name, err)
			}
			if len(m.services) != 1 || m.services[0].Spec.Labels[moby.LabelGeneration] != "2" || len(m.tasks) != 1 {
				t.Errorf("%s: %d services with %d tasks are left", name, len(m.services), len(m.tasks))
			}
		})
	}
	f("its place was not found", &managers{fate: homeless, leave: 10}, nil, false)
	f("its place was found meanwhile", &managers{fate: homeless, leave: 10}, runs, true)
	f("its node refused it", &managers{fate: prepares, leave: 2}, refused, false)
	f("its node could not start it", &managers{fate: prepares, leave: 2}, failed, false)
	f("its image is still pulled", &managers{fate: prepares, leave: 2}, nil, true)
	f("it runs after all", &managers{fate: prepares, leave: 2}, runs, true)
	f("it has no task", &managers{leave: 2}, nil, true)
	f("nobody heard that it was made", &managers{fate: runs, cut: true}, nil, true)
	f("nobody heard that it was made, and it has no place", &managers{fate: homeless, cut: true}, nil, false)
}

// A leader that was just chosen has heard of no node yet, and finds no place on any: a
// start waits for it.
func TestNodesAreHeardOfFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &managers{fate: homeless, settled: time.Now().Add(15 * time.Second)}
		d := &Driver{engine: m, instance: "here", urls: map[string]string{}}
		spec := driver.Spec{Pool: "pool", Name: "1", Generation: 1, Hash: "h", Container: configs.Container{Image: "a:1", PullPolicy: "never"}}
		if err := d.Start(t.Context(), spec); err != nil {
			t.Errorf("its start: %v", err)
		}
		if list, err := d.List(t.Context()); err != nil || len(list) != 1 || list[0].URL == "" {
			t.Errorf("it is at %+v %v", list, err)
		}
	})
}
