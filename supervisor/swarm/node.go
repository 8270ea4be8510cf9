package swarm

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"

	"roundhouse/configs"
)

// fits says why no node is one for a container: by its constraints and by what nodes
// announce of what it reserves, whether or not that is free.
func fits(c configs.Container, nodes []swarm.Node) error {
	active := 0
	for _, n := range nodes {
		if n.Spec.Availability != swarm.NodeAvailabilityActive || n.Status.State != swarm.NodeStateReady {
			continue
		}
		active++
		if meets(c.Constraints, n) && announces(c.GenericResources, n) {
			return nil
		}
	}
	wants := append([]string(nil), c.Constraints...)
	for _, g := range generic(c) {
		wants = append(wants, fmt.Sprintf("%d %s", g.DiscreteResourceSpec.Value, g.DiscreteResourceSpec.Kind))
	}
	if len(wants) == 0 {
		return fmt.Errorf("none of the Swarm's %d nodes takes tasks: all are drained, paused or lost", len(nodes))
	}
	return fmt.Errorf("none of the %d nodes that take tasks, of %d, has %s", active, len(nodes), strings.Join(wants, ", "))
}

func meets(constraints []string, n swarm.Node) bool {
	for _, text := range constraints {
		key, want, equal := strings.Cut(text, "==")
		if !equal {
			key, want, _ = strings.Cut(text, "!=")
		}
		if holds(strings.TrimSpace(key), strings.TrimSpace(want), n) != equal {
			return false
		}
	}
	return true
}

// holds reports whether a node is what a constraint's key and value say.
func holds(key, want string, n swarm.Node) bool {
	if label, ok := strings.CutPrefix(key, "node.labels."); ok {
		return strings.EqualFold(n.Spec.Labels[label], want)
	}
	if label, ok := strings.CutPrefix(key, "engine.labels."); ok {
		return strings.EqualFold(n.Description.Engine.Labels[label], want)
	}
	have := map[string]string{
		"node.id": n.ID, "node.hostname": n.Description.Hostname, "node.role": string(n.Spec.Role),
		"node.platform.os": n.Description.Platform.OS, "node.platform.arch": n.Description.Platform.Architecture,
	}
	if key != "node.ip" {
		return strings.EqualFold(have[key], want)
	}
	ip, err := netip.ParseAddr(n.Status.Addr)
	if err != nil {
		return false
	}
	if net, err := netip.ParsePrefix(want); err == nil {
		return net.Contains(ip)
	}
	return ip.String() == want
}

// announces reports whether a node has what is to be reserved.
func announces(wanted map[string]int64, n swarm.Node) bool {
	have := map[string]int64{}
	for _, g := range n.Description.Resources.GenericResources {
		switch {
		case g.NamedResourceSpec != nil:
			have[g.NamedResourceSpec.Kind]++
		case g.DiscreteResourceSpec != nil:
			have[g.DiscreteResourceSpec.Kind] += g.DiscreteResourceSpec.Value
		}
	}
	for kind, count := range wanted {
		if have[kind] < count {
			return false
		}
	}
	return true
}

// looker is what networks asks.
type looker interface {
	NetworkInspect(ctx context.Context, id string, options network.InspectOptions) (network.Inspect, error)
}

// networks says which of a pool's networks a service cannot be on.
func networks(ctx context.Context, e looker, names []string) error {
	for _, name := range names {
		n, err := e.NetworkInspect(ctx, name, network.InspectOptions{})
		switch {
		case cerrdefs.IsNotFound(err):
			return fmt.Errorf("there is no network %q; `docker network create --driver overlay --attachable %s` makes one", name, name)
		case err != nil:
			return err
		case n.Scope != "swarm":
			return fmt.Errorf("the network %q is this machine's alone (driver %s); a Swarm service takes an overlay network", name, n.Driver)
		}
	}
	return nil
}
