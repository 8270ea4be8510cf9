package swarm

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/docker/docker/api/types/filters"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
)

// Changed delivers a value when a service of ours changed, or may have.
func (d *Driver) Changed() <-chan struct{} { return d.changed }

// watch follows the engine's events until ctx ends: of services and nodes, and of the
// containers of its own node. A stream that breaks says nothing about what was
// missed, so everything is listed again.
func (d *Driver) watch(ctx context.Context) {
	f := filters.NewArgs(filters.Arg("type", "service"), filters.Arg("type", "node"), filters.Arg("type", "container"))
	for ctx.Err() == nil {
		if d.agree(ctx) != nil {
			driver.Wait(ctx, time.Second)
			continue
		}
		moby.Follow(ctx, d.engine, f, d.changed)
		d.changed.Give()
		driver.Wait(ctx, time.Second)
	}
}

// poll looks at the tasks themselves until ctx ends: of those on other nodes a
// manager tells no events.
func (d *Driver) poll(ctx context.Context) {
	var last uint64
	for ctx.Err() == nil {
		if d.agree(ctx) == nil {
			if now := look(d.ours(ctx, "")); now != last {
				last = now
				d.changed.Give()
			}
		}
		driver.Wait(ctx, taskPoll)
	}
}

// look sums up all of the tasks that List tells.
func look(list []service, err error) uint64 {
	h := fnv.New64a()
	if err != nil {
		return 1
	}
	for _, s := range list {
		for _, t := range s.tasks {
			n := s.nodes[t.NodeID]
			fmt.Fprintln(h, t.ID, t.Status.State, t.DesiredState, n.Status.State, n.Spec.Availability, len(t.Status.PortStatus.Ports))
		}
	}
	return h.Sum64()
}
