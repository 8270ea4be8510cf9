package supervisor

import (
	"errors"
	"time"

	"roundhouse/supervisor/driver"
)

// lost notes that a driver does not answer.
func (s *Supervisor) lost(r *runner, err error) {
	if r.missed.IsZero() {
		r.missed = s.clock.Now()
		s.events.note("", "", "driver", r.name+" does not answer: "+err.Error())
	}
	r.listed = false
}

// regained takes the first answer of a driver, or the first after it was away. What
// ended meanwhile did so unseen, most likely with the driver itself: a Docker
// engine takes its containers with it. The same holds after the machine, or the
// container that this supervisor stands in, began anew.
func (s *Supervisor) regained(r *runner, instances []driver.Instance) {
	since := r.missed
	r.missed = time.Time{}
	if !since.IsZero() {
		s.events.note("", "", "driver", r.name+" answers again after "+s.clock.Now().Sub(since).Round(100*time.Millisecond).String())
	}
	if since.IsZero() && !s.memory.rebooted && !s.options.Inside {
		return
	}
	running := map[string]bool{}
	for _, i := range instances {
		running[i.ID] = i.Running
	}
	for id, w := range s.memory.intent.Workers {
		if k, ok := s.plan.kinds[id]; ok && k.driver == r.name && !running[id] {
			s.fleet.at(id).interrupted = w.Generation
		}
	}
}

// missing reports whether an act failed because its driver is away.
func (s *Supervisor) missing(id string, err error) bool {
	return errors.Is(err, driver.ErrAway) || !s.runnerOf(id).answers()
}
