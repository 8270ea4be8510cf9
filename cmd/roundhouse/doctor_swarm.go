package main

import (
	"context"
	"slices"

	"roundhouse/configs"
	"roundhouse/supervisor/swarm"
)

// swarm reports whether a Swarm can run the pools that are to run in one.
func (d *doctor) swarm(ctx context.Context) {
	if !slices.ContainsFunc(d.cfg.Pools, func(p configs.Pool) bool { return p.Driver == "swarm" }) {
		return
	}
	for _, f := range swarm.Check(ctx, d.dockerHost(), d.cfg.Pools) {
		d.note(f.State, "swarm", f.Action, "%s", f.Text)
	}
}
