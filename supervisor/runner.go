package supervisor

import (
	"context"
	"slices"
	"time"

	"roundhouse/supervisor/driver"
)

// runner is one driver and all that is known of it. It is forgotten as a whole, by
// Supervisor.retire.
type runner struct {
	name      string // in the configuration
	driver    driver.Driver
	cancel    context.CancelFunc // ends the listing; nil: it has not begun
	done      chan struct{}      // closed once the listing has ended
	turn      chan struct{}      // holds a value while the driver is asked for its workers
	listed    bool               // it has answered, and still does
	missed    time.Time          // since when it does not answer; zero: it does
	instances []driver.Instance
}

func newRunner(name string, d driver.Driver) *runner {
	return &runner{name: name, driver: d, turn: make(chan struct{}, 1), done: make(chan struct{})}
}

// answers reports whether what the runner's driver runs is known.
func (r *runner) answers() bool { return r != nil && r.listed }

// has reports whether the driver was found to have a worker, running or ended.
func (r *runner) has(id string) bool {
	for _, i := range r.instances {
		if i.ID == id {
			return true
		}
	}
	return false
}

// forget has the driver drop what it keeps of workers that have ended and that nobody
// wants.
func (r *runner) forget(wanted func(id string) bool) {
	f, ok := r.driver.(interface{ Forget(id string) })
	if !ok {
		return
	}
	r.instances = slices.DeleteFunc(r.instances, func(i driver.Instance) bool {
		gone := !i.Running && !wanted(i.ID)
		if gone {
			f.Forget(i.ID)
		}
		return gone
	})
}

// follow lists a driver's workers whenever something changed, and from time to
// time, since a change may go unheard.
func (s *Supervisor) follow(r *runner) {
	ctx, cancel := context.WithCancel(s.ctx)
	r.cancel = cancel
	s.group.Go(func() {
		defer close(r.done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			s.list(ctx, r)
			select {
			case <-ctx.Done():
				return
			case <-r.driver.Changed():
			case <-tick.C:
			}
		}
	})
}

// list asks a driver once and tells the loop. Whoever asks waits for the one before:
// of two answers that are on their way at once nobody knows which is the older, and a
// stale answer would revive stopped workers and lose started ones.
func (s *Supervisor) list(ctx context.Context, r *runner) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return
	}
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	instances, err := r.driver.List(limited)
	s.tell(func() { s.found(r, instances, err) })
}

// found takes a driver's answer. After an error nothing is known of its
// workers, and nothing is done on them.
func (s *Supervisor) found(r *runner, instances []driver.Instance, err error) {
	if s.runners[r.name] != r {
		return // it was retired meanwhile
	}
	if err != nil {
		s.lost(r, err)
		return
	}
	if !r.listed {
		s.log.Debug("driver answers", "driver", r.name, "workers", len(instances))
		s.regained(r, instances)
	}
	r.listed, r.instances = true, instances
	s.fleet.take(s.runners)
}

// runnerOf finds the driver of a worker, also of one that the configuration no
// longer has. Nil: nobody here runs it.
func (s *Supervisor) runnerOf(id string) *runner {
	if k, ok := s.plan.kinds[id]; ok {
		return s.runners[k.driver]
	}
	for _, r := range s.runners {
		if r.has(id) {
			return r
		}
	}
	return nil
}

// allListed reports whether every driver has answered.
func (s *Supervisor) allListed() bool {
	for _, r := range s.runners {
		if !r.listed {
			return false
		}
	}
	return true
}

// retire closes the drivers that no pool names any more and that run nothing. While a
// reload is under way it may count on every driver that is open.
func (s *Supervisor) retire() {
	if !s.reloading.TryLock() {
		return
	}
	defer s.reloading.Unlock()
	for name, r := range s.runners {
		if s.plan.names(name) || !r.listed || len(r.instances) > 0 || r.cancel == nil {
			continue
		}
		delete(s.runners, name)
		r.cancel()
		s.group.Go(func() {
			<-r.done
			if err := r.driver.Close(); err != nil {
				s.log.Warn("driver", "driver", r.name, "error", err)
			}
		})
	}
}
