package supervisor

import (
	"time"

	"roundhouse/configs"
	"roundhouse/supervisor/core"
)

// replanTime is how often a place is looked for, as long as a worker has none.
const replanTime = 15 * time.Second

// redraw makes the blueprint of a configuration and puts it in force.
func (s *Supervisor) redraw(cfg *configs.Config, in core.Intent) error {
	plan, err := s.sketch(cfg, scales(in))
	if err != nil {
		return err
	}
	s.enact(plan)
	return nil
}

// enact puts a blueprint in force and remembers its specs.
func (s *Supervisor) enact(plan *blueprint) {
	s.plan, s.planned = plan, s.clock.Now()
	s.gate.tls = s.doorTLS(plan.config.Door.TLS)
	for hash, spec := range plan.specs {
		s.memory.specs[hash] = spec
	}
	s.expect()
}

// replan looks for places anew as long as some worker has none: a card comes back, or
// whoever held it ends.
func (s *Supervisor) replan() {
	if len(s.plan.plan.lacks) == 0 || s.clock.Now().Sub(s.planned) < replanTime {
		return
	}
	s.planned = s.clock.Now()
	plan, err := s.sketch(s.plan.file, scales(s.memory.intent))
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

// sketch draws a configuration without putting it in force.
func (s *Supervisor) sketch(cfg *configs.Config, scale map[string]int) (*blueprint, error) {
	places, err := place(scaled(cfg, scale), s.options.Sysfs, s.options.Proc, s.keptDevices())
	if err != nil {
		return nil, err
	}
	plan, err := draw(scaled(cfg, scale), places)
	if err != nil {
		return nil, err
	}
	plan.file = cfg
	for i := range plan.pools {
		plan.pools[i].Proven = s.options.Proven
	}
	return plan, nil
}
