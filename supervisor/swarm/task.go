package swarm

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/swarm"

	"roundhouse/supervisor/driver"
)

// ended reports whether a task in a state has ended, or will never begin.
func ended(s swarm.TaskState) bool {
	switch s {
	case swarm.TaskStateComplete, swarm.TaskStateShutdown, swarm.TaskStateFailed, swarm.TaskStateRejected, swarm.TaskStateRemove, swarm.TaskStateOrphaned:
		return true
	}
	return false
}

// wanted reports whether Swarm means a task to run.
func wanted(t swarm.Task) bool { return !ended(t.DesiredState) }

// placed reports whether a task has a node.
func placed(t swarm.Task) bool { return t.NodeID != "" }

// service is one of ours, with its tasks, the oldest first.
type service struct {
	swarm.Service
	tasks []swarm.Task
	nodes map[string]swarm.Node
}

// tasksOf gives each service its tasks. Of a slot's tasks the first is the
// generation; what else an operator had Swarm add to it is in other slots.
func tasksOf(services []swarm.Service, tasks []swarm.Task, nodes []swarm.Node) []service {
	byID := map[string]swarm.Node{}
	for _, n := range nodes {
		byID[n.ID] = n
	}
	out := make([]service, len(services))
	for i, s := range services {
		out[i] = service{Service: s, nodes: byID}
		for _, t := range tasks {
			if t.ServiceID == s.ID {
				out[i].tasks = append(out[i].tasks, t)
			}
		}
		slices.SortFunc(out[i].tasks, func(a, b swarm.Task) int {
			return cmp.Or(cmp.Compare(a.Slot, b.Slot), a.CreatedAt.Compare(b.CreatedAt))
		})
	}
	return out
}

// replicas is how many tasks the service is to have.
func (s service) replicas() uint64 {
	if r := s.Spec.Mode.Replicated; r != nil && r.Replicas != nil {
		return *r.Replicas
	}
	return 0
}

// down reports whether a task's node is lost: what became of the task there, nobody can
// say, and Swarm ends it when the node is back.
func (s service) down(t swarm.Task) bool {
	n, known := s.nodes[t.NodeID]
	return placed(t) && (!known || n.Status.State == swarm.NodeStateDown)
}

// settling reports whether a new leader has not heard of some node yet, as after managers
// began anew: that no node fits is then no last word.
func (s service) settling() bool {
	for _, n := range s.nodes {
		if n.Status.State == swarm.NodeStateUnknown {
			return true
		}
	}
	return false
}

// live are the tasks that run or are about to, on nodes that are there.
func (s service) live() []swarm.Task {
	var out []swarm.Task
	for _, t := range s.tasks {
		if !ended(t.Status.State) && !s.down(t) && (placed(t) || wanted(t)) {
			out = append(out, t)
		}
	}
	return out
}

// task is the one that the generation began with; nil: there is none yet, or no more.
func (s service) task() *swarm.Task {
	if len(s.tasks) == 0 {
		return nil
	}
	return &s.tasks[0]
}

// replaced reports whether Swarm has put another task in the first one's place, as
// `docker service update` has it do.
func (s service) replaced() bool {
	return len(s.tasks) > 0 && (s.tasks[0].Spec.ForceUpdate > 0 || len(s.tasks) > 1 && s.tasks[1].Slot == s.tasks[0].Slot)
}

// host is what a node is called.
func (s service) host(t swarm.Task) string {
	if n, ok := s.nodes[t.NodeID]; ok && n.Description.Hostname != "" {
		return n.Description.Hostname
	}
	return t.NodeID
}

// leaving says why Swarm stops a task that nobody here asked to be stopped; empty: it
// stays. at once says that nothing is to be expected of it any more.
func (s service) leaving(t swarm.Task) (why string, atOnce bool) {
	switch n := s.nodes[t.NodeID]; {
	case s.down(t):
		return "its node " + s.host(t) + " is lost", true
	case wanted(t):
		return "", false
	case n.Spec.Availability == swarm.NodeAvailabilityDrain:
		return "its node " + s.host(t) + " is drained", false
	}
	return "Swarm stops it", false
}

// how says how a task ended.
func how(t swarm.Task) string {
	switch {
	case t.Status.State == swarm.TaskStateRejected:
		return "its node refused it: " + t.Status.Err
	case t.Status.ContainerStatus == nil && t.Status.Err != "":
		return t.Status.Err
	case t.Status.ContainerStatus == nil:
		return t.Status.Message
	}
	code := t.Status.ContainerStatus.ExitCode
	why := fmt.Sprintf("exit status %d", code)
	if code > 128 {
		why += fmt.Sprintf(" (signal %d)", code-128)
	}
	if t.Status.Err != "" && t.Status.Err != plain(t) {
		why += ": " + strings.TrimPrefix(t.Status.Err, plain(t)+": ")
	}
	return why
}

// plain is what Swarm says of a program that ended by itself.
func plain(t swarm.Task) string {
	return fmt.Sprintf("task: non-zero exit (%d)", t.Status.ContainerStatus.ExitCode)
}

// ran reports whether a task's program began, and has ended since.
func ran(t swarm.Task) bool {
	return ended(t.Status.State) && t.Status.ContainerStatus != nil && (t.Status.Err == "" || t.Status.Err == plain(t))
}

// url is where the door reaches a task: on the network that both are on, else at its
// node. Empty: nowhere yet.
func (s service) url(t swarm.Task) string {
	network := s.network()
	if network == "" {
		for _, p := range t.Status.PortStatus.Ports {
			if p.PublishMode == swarm.PortConfigPublishModeHost && p.PublishedPort != 0 {
				if host := address(s.nodes[t.NodeID]); host != "" {
					return "http://" + joined(host, int(p.PublishedPort))
				}
			}
		}
		return ""
	}
	port, err := strconv.Atoi(s.Spec.Labels[labelPort])
	if err != nil {
		return ""
	}
	for _, a := range t.NetworksAttachments {
		if a.Network.ID != network && a.Network.Spec.Name != network {
			continue
		}
		for _, cidr := range a.Addresses {
			if p, err := netip.ParsePrefix(cidr); err == nil {
				return "http://" + joined(p.Addr().String(), port)
			}
		}
	}
	return ""
}

// address is where a node is reached. The leader may say 0.0.0.0 of itself; as a
// manager it has said better.
func address(n swarm.Node) string {
	if ip, err := netip.ParseAddr(n.Status.Addr); err == nil && !ip.IsUnspecified() {
		return ip.String()
	}
	if n.ManagerStatus != nil {
		if ap, err := netip.ParseAddrPort(n.ManagerStatus.Addr); err == nil {
			return ap.Addr().String()
		}
	}
	return ""
}

func joined(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}

// instance is what a service says of its worker.
func (s service) instance() (driver.Instance, error) {
	i, err := labelled(s)
	if err != nil {
		return i, err
	}
	t := s.task()
	switch {
	case t == nil && s.replicas() > 0:
		i.Running = true // Swarm has yet to make its task
		return i, nil
	case t == nil:
		i.Ended, i.Released = "stopped", true
		return i, nil
	}
	i.Began = t.Status.Timestamp
	if placed(*t) {
		i.Node = s.host(*t)
	}
	if c := t.Status.ContainerStatus; c != nil {
		i.Container = short(c.ContainerID)
	}
	switch {
	case s.replaced():
		i.Ended, i.Released, i.Killed = "Swarm was told to replace its task; it is started anew as the next generation", true, true
	case ended(t.Status.State):
		i.Ended, i.Released = how(*t), true
		if why, _ := s.leaving(*t); s.replicas() > 0 && strings.HasPrefix(why, "its node") { // the task's own end looks like one that was asked for
			i.Ended, i.Killed = why+": "+i.Ended, true
		}
	case !placed(*t) && t.Status.Err != "" && !s.settling():
		i.Ended, i.Released = unplaced(*t), true
	case s.replicas() == 0 && s.down(*t):
		i.Ended, i.Released, i.Killed = "its node "+s.host(*t)+" is lost", true, true
	default:
		i.Running, i.URL = true, s.url(*t)
		if why, atOnce := s.leaving(*t); s.replicas() > 0 && why != "" {
			i.Leaving = why
			if !atOnce {
				i.LeavesIn = s.grace() / 2 // what is left then goes on elsewhere, before it is cut
			}
		}
	}
	return i, nil
}

func unplaced(t swarm.Task) string { return "Swarm finds no place for it: " + t.Status.Err }

func short(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}
