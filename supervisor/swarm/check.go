package swarm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"

	"roundhouse/configs"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
)

// Finding is one thing that Check has looked at.
type Finding struct {
	State  string // ok, warn or fail
	Text   string
	Action string // what to do; empty: nothing
}

// Check reports whether a Swarm can run the pools that are to run in one.
func Check(ctx context.Context, host moby.Host, pools []configs.Pool) []Finding {
	e, err := moby.Connect(host)
	if err != nil {
		return []Finding{{"fail", err.Error(), "set DOCKER_HOST to a manager of the Swarm"}}
	}
	d := &Driver{engine: e}
	defer e.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := d.ready(ctx); errors.Is(err, errNoManager) {
		return []Finding{{"fail", err.Error(), "`docker swarm init` makes one; DOCKER_HOST names another engine"}}
	} else if err != nil {
		return []Finding{{"fail", "no Docker engine answers: " + strings.TrimPrefix(err.Error(), driver.ErrAway.Error()+": "), "start it (systemctl start docker), or set DOCKER_HOST to a manager of the Swarm"}}
	}
	nodes, err := e.NodeList(ctx, swarm.NodeListOptions{})
	if err != nil {
		return []Finding{{"fail", "the Swarm does not answer: " + err.Error(), "see that more than half of its managers run: `docker node ls`"}}
	}
	out := []Finding{counted(nodes)}
	for _, p := range pools {
		if p.Driver != "swarm" {
			continue
		}
		if err := fits(p.Container, nodes); err != nil {
			out = append(out, Finding{"fail", fmt.Sprintf("pool %s: %v", p.Name, err), "`docker node update --label-add KEY=VALUE NODE`, node-generic-resources in a node's daemon.json, or other constraints"})
		} else {
			out = append(out, Finding{"ok", fmt.Sprintf("pool %s: a node fits", p.Name), ""})
		}
		out = append(out, attached(ctx, e, p)...)
	}
	return out
}

// counted says how many nodes there are, and whether one manager may be lost.
func counted(nodes []swarm.Node) Finding {
	managers, ready := 0, 0
	for _, n := range nodes {
		if n.Spec.Role == swarm.NodeRoleManager {
			managers++
		}
		if n.Status.State == swarm.NodeStateReady {
			ready++
		}
	}
	text := fmt.Sprintf("%d of %d nodes are ready, %d of them managers", ready, len(nodes), managers)
	if len(nodes) > 2 && managers < 3 {
		return Finding{"warn", text + ": the Swarm stands still when one manager is lost", "`docker node promote NODE`, until there are three"}
	}
	return Finding{"ok", text, ""}
}

// attached says which of a pool's networks will not do.
func attached(ctx context.Context, e looker, p configs.Pool) []Finding {
	var out []Finding
	for _, name := range p.Container.Networks {
		if err := networks(ctx, e, []string{name}); err != nil {
			out = append(out, Finding{"fail", fmt.Sprintf("pool %s: %v", p.Name, err), "name an overlay network"})
			continue
		}
		if n, err := e.NetworkInspect(ctx, name, network.InspectOptions{}); err == nil && !n.Attachable {
			out = append(out, Finding{"warn", fmt.Sprintf("pool %s: the network %q is not attachable: a door that is no service of the Swarm cannot be on it", p.Name, name), "make it anew with --attachable, unless door and supervisor are services (compose/stack.yaml)"})
		}
	}
	return out
}
