package supervisor

import (
	"errors"
	"time"

	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
)

// lost notes that a driver does not answer.
func (s *Supervisor) lost(name string, err error) {
	if s.missed[name].IsZero() {
		s.missed[name] = s.clock.Now()
		s.event("", "", "driver", name+" does not answer: "+err.Error())
	}
	s.listed[name] = false
}

// regained takes the first answer of a driver, or the first after it was away. What
// ended meanwhile did so unseen, most likely with the driver itself: a Docker
// engine takes its containers with it. The same holds after the machine, or the
// container that this supervisor stands in, began anew.
func (s *Supervisor) regained(name string, instances []driver.Instance) {
	since := s.missed[name]
	delete(s.missed, name)
	if !since.IsZero() {
		s.event("", "", "driver", name+" answers again after "+s.clock.Now().Sub(since).Round(100*time.Millisecond).String())
	}
	if since.IsZero() && !s.rebooted && !s.options.Inside {
		return
	}
	running := map[string]bool{}
	for _, i := range instances {
		running[i.ID] = i.Running
	}
	for id, w := range s.intent.Workers {
		if k, ok := s.plan.kinds[id]; ok && k.driver == name && !running[id] {
			s.interrupted[id] = w.Generation
		}
	}
}

// missing says whether an act failed because its driver is away.
func (s *Supervisor) missing(id string, err error) bool {
	name, _ := s.driverOf(id)
	return errors.Is(err, driver.ErrAway) || !s.listed[name]
}

// mostTries is how often a preparation is tried that the driver does not take,
// although it answers when it is asked what runs.
const mostTries = 20

// again says whether a preparation that failed is to be tried again.
func (s *Supervisor) again(a core.Action, err error) bool {
	if !s.missing(a.Worker, err) || s.tries[a.Key] >= mostTries {
		delete(s.tries, a.Key)
		return false
	}
	s.tries[a.Key]++
	return true
}
