package swarm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"roundhouse/configs"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
)

// serviceWith is a service of generation 2 with tasks, at two nodes: n1 is there, n2 as
// it is given.
func serviceWith(replicas uint64, n2 swarm.Node, tasks ...swarm.Task) service {
	n2.ID, n2.Description.Hostname = "n2", "gpu-2"
	n1 := swarm.Node{ID: "n1", Description: swarm.NodeDescription{Hostname: "gpu-1"}, Status: swarm.NodeStatus{State: swarm.NodeStateReady, Addr: "0.0.0.0"}, ManagerStatus: &swarm.ManagerStatus{Addr: "10.0.0.1:2377"}}
	grace := 20 * time.Second
	s := swarm.Service{ID: "s"}
	s.Spec.Labels = map[string]string{moby.LabelGeneration: "2", moby.LabelWorker: "pool/1", moby.LabelHash: "h", labelPort: "8000"}
	s.Spec.Mode.Replicated = &swarm.ReplicatedService{Replicas: &replicas}
	s.Spec.TaskTemplate.ContainerSpec = &swarm.ContainerSpec{StopGracePeriod: &grace}
	for i := range tasks {
		tasks[i].ServiceID, tasks[i].Slot, tasks[i].CreatedAt = "s", 1, time.Unix(int64(i), 0)
	}
	return tasksOf([]swarm.Service{s}, tasks, []swarm.Node{n1, n2})[0]
}

func taskOf(node string, state, desired swarm.TaskState) swarm.Task {
	t := swarm.Task{NodeID: node, DesiredState: desired, Status: swarm.TaskStatus{State: state}}
	if node != "" {
		t.Status.ContainerStatus = &swarm.ContainerStatus{ContainerID: "0123456789abcdef"}
	}
	if state == swarm.TaskStateRunning {
		t.Status.PortStatus.Ports = []swarm.PortConfig{{PublishMode: swarm.PortConfigPublishModeHost, PublishedPort: 32768}}
	}
	return t
}

// What a worker is, by what Swarm says of its service, tasks and nodes.
func TestInstance(t *testing.T) {
	const run, down = swarm.TaskStateRunning, swarm.TaskStateShutdown
	there := swarm.Node{Status: swarm.NodeStatus{State: swarm.NodeStateReady, Addr: "fd00::2"}}
	drained, lost := there, there
	drained.Spec.Availability, lost.Status.State = swarm.NodeAvailabilityDrain, swarm.NodeStateDown
	failed := taskOf("n2", swarm.TaskStateFailed, down)
	failed.Status.Err, failed.Status.ContainerStatus.ExitCode = "task: non-zero exit (3)", 3
	refused := taskOf("n2", swarm.TaskStateRejected, down)
	refused.Status.Err = "No such image: a:1"
	pending := taskOf("", swarm.TaskStatePending, run)
	pending.Status.Err = "no suitable node (insufficient resources on 2 nodes)"

	f := func(name string, s service, want string) {
		t.Helper()
		i, err := s.instance()
		if err != nil || i.ID != "pool/1" || i.Generation != 2 || i.Hash != "h" {
			t.Errorf("%s: %+v %v", name, i, err)
		}
		got := fmt.Sprintf("%q", i.Ended)
		if i.Running {
			got = "runs at " + i.URL
		}
		if i.Leaving != "" {
			got += fmt.Sprintf(", leaves in %v: %s", i.LeavesIn, i.Leaving)
		}
		if got != want || i.Running == i.Released {
			t.Errorf("%s: %s, released %t; want %s", name, got, i.Released, want)
		}
	}
	f("no task yet", serviceWith(1, there), "runs at ")
	f("a node looks for it", serviceWith(1, there, taskOf("", swarm.TaskStatePending, run)), "runs at ")
	f("no node fits", serviceWith(1, there, pending), `"Swarm finds no place for it: no suitable node (insufficient resources on 2 nodes)"`)
	f("no node was heard of yet", serviceWith(1, swarm.Node{Status: swarm.NodeStatus{State: swarm.NodeStateUnknown}}, pending), "runs at ")
	f("its image is pulled", serviceWith(1, there, taskOf("n2", swarm.TaskStatePreparing, run)), "runs at ")
	f("it runs", serviceWith(1, there, taskOf("n2", run, run)), "runs at http://[fd00::2]:32768")
	f("it runs at the leader", serviceWith(1, there, taskOf("n1", run, run)), "runs at http://10.0.0.1:32768")
	f("it failed", serviceWith(1, there, failed), `"exit status 3"`)
	f("its node refused it", serviceWith(1, there, refused), `"its node refused it: No such image: a:1"`)
	f("its node is drained", serviceWith(1, drained, taskOf("n2", run, down)), "runs at http://[fd00::2]:32768, leaves in 10s: its node gpu-2 is drained")
	f("its node is drained, and it has ended", serviceWith(1, drained, taskOf("n2", down, down)), `"its node gpu-2 is drained: exit status 0"`)
	f("its node is lost", serviceWith(1, lost, taskOf("n2", run, down)), "runs at http://[fd00::2]:32768, leaves in 0s: its node gpu-2 is lost")
	f("its node is lost, and it was stopped", serviceWith(0, lost, taskOf("n2", run, swarm.TaskStateRemove)), `"its node gpu-2 is lost"`)
	f("it ends", serviceWith(0, there, taskOf("n2", run, swarm.TaskStateRemove)), "runs at http://[fd00::2]:32768")
	f("it was stopped", serviceWith(0, there), `"stopped"`)
	f("Swarm has replaced it", serviceWith(1, there, taskOf("n2", down, down), taskOf("n1", run, run)), `"Swarm was told to replace its task; it is started anew as the next generation"`)

	if s := serviceWith(1, lost, taskOf("n2", run, down)); len(s.live()) != 0 {
		t.Error("a task at a lost node holds up its successor")
	}
	if s := serviceWith(1, there, taskOf("n2", down, down), taskOf("n1", run, run)); len(s.live()) != 1 {
		t.Error("what Swarm put in a task's place is not seen")
	}
	on := serviceWith(1, there, taskOf("n2", run, run))
	on.Spec.TaskTemplate.Networks = []swarm.NetworkAttachmentConfig{{Target: "net1"}}
	on.tasks[0].NetworksAttachments = []swarm.NetworkAttachment{{Network: swarm.Network{ID: "ingress"}, Addresses: []string{"10.0.0.9/24"}}, {Network: swarm.Network{ID: "net1"}, Addresses: []string{"10.0.1.7/24"}}}
	f("on an overlay network", on, "runs at http://10.0.1.7:8000")
}

func TestFits(t *testing.T) {
	gpu := swarm.GenericResource{NamedResourceSpec: &swarm.NamedGenericResource{Kind: "NVIDIA-GPU", Value: "GPU-1"}}
	a := swarm.Node{ID: "a", Spec: swarm.NodeSpec{Role: swarm.NodeRoleManager, Availability: swarm.NodeAvailabilityActive}, Status: swarm.NodeStatus{State: swarm.NodeStateReady, Addr: "10.0.0.1"}}
	b := a
	a.Spec.Labels = map[string]string{"gpu": "h100"}
	a.Description.Hostname = "gpu-1"
	a.Description.Resources.GenericResources = []swarm.GenericResource{gpu, gpu, {DiscreteResourceSpec: &swarm.DiscreteGenericResource{Kind: "SSD", Value: 3}}}
	b.Spec.Availability, b.Spec.Labels = swarm.NodeAvailabilityDrain, map[string]string{"gpu": "b60"}
	f := func(want bool, resources map[string]int64, constraints ...string) {
		t.Helper()
		err := fits(configs.Container{Constraints: constraints, GenericResources: resources}, []swarm.Node{a, b})
		if (err == nil) != want {
			t.Errorf("%v %v: %v", constraints, resources, err)
		}
	}
	f(true, nil)
	f(true, nil, "node.labels.gpu == H100", "node.role==manager", "node.hostname != gpu-2", "node.ip == 10.0.0.0/24", "node.id == a")
	f(false, nil, "node.labels.gpu == b60") // drained
	f(false, nil, "node.labels.gpu != h100")
	f(false, nil, "node.ip != 10.0.0.1")
	f(false, nil, "engine.labels.os == x")
	f(true, map[string]int64{"NVIDIA-GPU": 2, "SSD": 3})
	f(false, map[string]int64{"NVIDIA-GPU": 3})
	f(false, map[string]int64{"SSD": 4})
	a.Spec.Availability = swarm.NodeAvailabilityPause
	if err := fits(configs.Container{}, []swarm.Node{a, b}); err == nil || !strings.Contains(err.Error(), "none of the Swarm's 2 nodes takes tasks") {
		t.Errorf("got %v", err)
	}
}

// shop is an engine that only knows images.
type shop struct {
	engine
	have  map[string]image.InspectResponse
	found string // the registry's digest; empty: it refuses
	auth  string // that it was shown
}

func (s *shop) ImageInspect(_ context.Context, id string, _ ...client.ImageInspectOption) (image.InspectResponse, error) {
	if i, ok := s.have[id]; ok {
		return i, nil
	}
	return image.InspectResponse{}, cerrdefs.ErrNotFound
}

func (s *shop) DistributionInspect(_ context.Context, _, auth string) (registry.DistributionInspect, error) {
	if s.auth = auth; s.found == "" {
		return registry.DistributionInspect{}, errors.New("unauthorized")
	}
	return registry.DistributionInspect{Descriptor: ocispec.Descriptor{Digest: digest.Digest(s.found)}}, nil
}

// What the nodes are told to run, by pull policy and by what the manager has.
func TestImage(t *testing.T) {
	digestOf := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	pulled := map[string]image.InspectResponse{"vllm/vllm-openai:v1": {ID: digestOf("1"), RepoDigests: []string{"other@" + digestOf("2"), "vllm/vllm-openai@" + digestOf("3")}}}
	built := map[string]image.InspectResponse{"roundhouse/worker-cpu:latest": {ID: digestOf("4")}}
	f := func(name, policy string, have map[string]image.InspectResponse, found, want string) {
		t.Helper()
		s := &shop{have: have, found: found}
		d := &Driver{engine: s, auth: func(context.Context, string) (string, error) { return "word", nil }}
		got, auth, err := d.image(t.Context(), driver.Spec{Container: configs.Container{Image: name, PullPolicy: policy}})
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || err == nil && got != want {
			t.Errorf("%s, %s: %s; want %s", name, policy, got, want)
		}
		if local := strings.HasPrefix(got, "sha256:"); err == nil && (auth == "word") == local {
			t.Errorf("%s, %s: nodes are given %q for the registry", name, policy, auth)
		}
	}
	f("vllm/vllm-openai:v1", "missing", pulled, "", "vllm/vllm-openai@"+digestOf("3"))
	f("vllm/vllm-openai:v1", "missing", nil, digestOf("5"), "vllm/vllm-openai:v1@"+digestOf("5"))
	f("vllm/vllm-openai:v1", "missing", nil, "", "cannot ask its registry for the image vllm/vllm-openai:v1: unauthorized")
	f("vllm/vllm-openai:v1", "always", pulled, digestOf("5"), "vllm/vllm-openai:v1@"+digestOf("5"))
	f("vllm/vllm-openai:v1", "never", pulled, digestOf("5"), digestOf("1"))
	f("roundhouse/worker-cpu:latest", "missing", built, "", digestOf("4"))
	f("roundhouse/worker-cpu:latest", "never", built, "", digestOf("4"))
	f("roundhouse/worker-cpu:latest", "never", nil, "", "is not at this manager")
	f("vllm/vllm-openai@"+digestOf("6"), "missing", nil, "", "vllm/vllm-openai@"+digestOf("6"))
	f("Not An Image", "missing", nil, "", "Not An Image")
}

// Errors that say that the Swarm was not there, and those that say something of what
// was asked.
func TestTold(t *testing.T) {
	f := func(err error, away bool) {
		t.Helper()
		if got := engineError(t.Context(), err); errors.Is(got, driver.ErrAway) != away {
			t.Errorf("%v: away %t", err, !away)
		}
	}
	f(nil, false)
	f(errors.New("no suitable node"), false)
	f(fmt.Errorf("rpc error: code = Unknown desc = The swarm does not have a leader. It's possible that too few managers are online."), true)
	f(cerrdefs.ErrUnavailable, true)
	f(client.ErrorConnectionFailed("unix:///x"), true)
	f(context.DeadlineExceeded, true)
}
