package supervisor

import (
	"fmt"
	"time"

	"roundhouse/configs"
	"roundhouse/supervisor/core"
)

// replanTime is how often a place is looked for, as long as a worker has none.
const replanTime = 15 * time.Second

// redraw makes the deployment of a configuration and puts it in force.
func (s *Supervisor) redraw(cfg *configs.Config, in core.Intent) error {
	plan, err := s.deploymentOf(cfg, scales(in))
	if err != nil {
		return err
	}
	s.enact(plan)
	return nil
}

// enact puts a deployment in force and remembers its specs.
func (s *Supervisor) enact(plan *deployment) {
	s.plan, plan.drawn = plan, s.clock.Now()
	s.gate.tls, s.gate.renewed = s.doorTLS(plan.config.Door.TLS), plan.drawn
	for hash, spec := range plan.specs {
		s.memory.specs[hash] = spec
	}
	s.expect()
}

// replan looks for places anew as long as some worker has none: a card comes back, or
// whoever held it ends.
func (s *Supervisor) replan() {
	if len(s.plan.plan.lacks) == 0 || s.clock.Now().Sub(s.plan.drawn) < replanTime {
		return
	}
	s.plan.drawn = s.clock.Now()
	plan, err := s.deploymentOf(s.plan.file, scales(s.memory.intent))
	if err != nil {
		s.log.Warn("the machine cannot be read", "error", err)
		return
	}
	if len(plan.plan.lacks) < len(s.plan.plan.lacks) {
		s.enact(plan)
	}
}

// scales are the numbers of workers that operators have asked for, by pool.
func scales(in core.Intent) map[string]int {
	out := map[string]int{}
	for name, c := range in.Pools {
		if c.Scale != nil {
			out[name] = *c.Scale
		}
	}
	return out
}

// images are what the pools' images were found to be.
func images(in core.Intent) map[string]core.Image {
	out := map[string]core.Image{}
	for name, c := range in.Pools {
		out[name] = c.Image
	}
	return out
}

// stands notes which image a pool's name for it stands for now, and draws the pool's
// workers anew if that is another than before: they are then to turn. Of an image that is
// gone nothing is known until the next preparation.
func (s *Supervisor) stands(pool string, image core.Image) {
	next := s.memory.intent.Clone()
	c := next.Pools[pool]
	was := c.Image
	if p, ok := poolOf(s.plan.file, pool); !ok || was == image || image.ID != "" && p.Container.Image != image.Name {
		return
	}
	c.Image = image
	next.Pools[pool] = c
	s.memory.remember(next)
	if err := s.redraw(s.plan.file, next); err != nil {
		s.log.Warn("the machine cannot be read", "error", err)
	}
	if was.Name == image.Name {
		s.events.note(pool, "", "image", fmt.Sprintf("%s stands for %s now, and stood for %s before", image.Name, image.ID, was.ID))
	}
}

// deploymentOf draws a configuration without putting it in force.
func (s *Supervisor) deploymentOf(cfg *configs.Config, scale map[string]int) (*deployment, error) {
	places, err := place(scaled(cfg, scale), s.options.Sysfs, s.options.Proc, s.keptDevices())
	if err != nil {
		return nil, err
	}
	plan, err := newDeployment(scaled(cfg, scale), places, images(s.memory.intent))
	if err != nil {
		return nil, err
	}
	plan.file = cfg
	for i := range plan.pools {
		plan.pools[i].Proven = s.options.Proven
	}
	return plan, nil
}
