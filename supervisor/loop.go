package supervisor

import (
	"context"
	"slices"
	"strings"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
)

// beat is how often the loop looks even when nothing was told.
const beat = 200 * time.Millisecond

// loop owns the supervisor's state until ctx ends.
func (s *Supervisor) loop(ctx context.Context) error {
	s.began = s.clock.Now()
	for name, d := range s.drivers {
		s.follow(name, d)
	}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	s.step()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.end:
			return err
		case f := <-s.inbox:
			f()
			s.drain()
		case <-tick.C:
		}
		s.step()
	}
}

// drain takes what else waits in the inbox, so that one step answers it all.
func (s *Supervisor) drain() {
	for range cap(s.inbox) {
		select {
		case f := <-s.inbox:
			f()
		default:
			return
		}
	}
}

// step observes, decides, remembers, publishes and acts, in this order.
func (s *Supervisor) step() {
	if s.ending {
		return
	}
	s.tendDoors()
	s.tendHandover()
	s.tendProbes()
	now := s.clock.Now()
	observed := s.observe(now)
	s.learn(observed, now)
	decision := core.Next(s.desired(), observed, now)
	for _, e := range decision.Events {
		s.event(e.Pool, e.Worker, e.Kind, e.Text)
		s.counters.count(e)
	}
	s.timeTurns(decision.Intent, now)
	s.remember(decision.Intent)
	s.flushEvents()
	s.publish()
	if len(s.end) > 0 {
		return // nothing is begun that would have to be ended at once
	}
	if s.heeded() {
		for _, a := range decision.Actions {
			s.act(a)
		}
	}
	s.announce()
}

// heeded says whether given doors take our word, or do not answer at all.
// While they obey another supervisor nothing is begun; what is to be begun is
// decided again in the next step.
func (s *Supervisor) heeded() bool {
	for _, d := range s.doors {
		if !d.child && (!d.refused.IsZero() || d.ack.Epoch == 0 && d.lastErr == "") {
			return false
		}
	}
	return true
}

// timeTurns takes the parts of turns that have just ended into the metrics.
func (s *Supervisor) timeTurns(next core.Intent, now time.Time) {
	for id, w := range next.Workers {
		old, ok := s.intent.Workers[id]
		if ok && old.Phase != w.Phase && w.Phase != core.Failed {
			pool, _, _ := strings.Cut(id, "/")
			switch old.Phase {
			case core.Draining, core.Drained, core.Starting, core.Warming:
				s.counters.seconds.WithLabelValues(pool, string(old.Phase)).Observe(now.Sub(old.Since).Seconds())
			}
		}
	}
}

func (s *Supervisor) desired() core.Desired {
	return core.Desired{Parallel: s.plan.config.Supervisor.Parallel, Pools: s.plan.pools, Intent: s.intent}
}

// follow lists a driver's workers whenever something changed, and from time to
// time, since a change may go unheard.
func (s *Supervisor) follow(name string, d driver.Driver) {
	again := make(chan struct{}, 1)
	s.lists[name] = again
	s.group.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			s.list(name, d)
			select {
			case <-s.ctx.Done():
				return
			case <-d.Changed():
			case <-again:
			case <-tick.C:
			}
		}
	})
}

// list asks a driver once and tells the loop. Whoever asks waits for the one before:
// of two answers that are on their way at once nobody knows which is the older, and
// taken last it would have what has ended run once more, and what was started be gone.
func (s *Supervisor) list(name string, d driver.Driver) {
	one, _ := s.listing.LoadOrStore(name, make(chan struct{}, 1))
	turn := one.(chan struct{})
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-s.ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, 20*time.Second)
	defer cancel()
	instances, err := d.List(ctx)
	s.tell(func() { s.found(name, instances, err) })
}

// found takes a driver's answer. After an error nothing is known of its
// workers, and nothing is done on them.
func (s *Supervisor) found(name string, instances []driver.Instance, err error) {
	if err != nil {
		s.lost(name, err)
		return
	}
	if !s.listed[name] {
		s.log.Debug("driver answers", "driver", name, "workers", len(instances))
		s.regained(name, instances)
	}
	s.listed[name] = true
	s.byDriver[name] = instances
	clear(s.instances)
	for _, list := range s.byDriver {
		for _, i := range list {
			s.instances[i.ID] = i
		}
	}
}

// act begins an action; its end comes back to the loop after a fresh list, so
// that the next decision sees what it has done.
func (s *Supervisor) act(a core.Action) {
	name, d := s.driverOf(a.Worker)
	if d == nil {
		return
	}
	if _, busy := s.acting[a.Worker]; busy && a.Kind == core.Prepare {
		return // it is under way, or begins once what is under way has ended
	}
	s.acts++
	number := s.acts
	s.acting[a.Worker] = number
	if s.failures[a.Worker].generation != a.Generation {
		delete(s.failures, a.Worker)
	}
	work := s.work(a, d)
	s.group.Go(func() {
		err := work()
		if err != nil || a.Kind != core.Warm && a.Kind != core.Prepare {
			s.list(name, d) // also of an error it is worth knowing whether the driver is there
		}
		s.tell(func() { s.acted(a, number, err) })
	})
}

// driverOf finds the driver of a worker, also of one that the configuration no
// longer has.
func (s *Supervisor) driverOf(id string) (string, driver.Driver) {
	if k, ok := s.plan.kinds[id]; ok {
		return k.driver, s.drivers[k.driver]
	}
	for name, list := range s.byDriver {
		for _, i := range list {
			if i.ID == id {
				return name, s.drivers[name]
			}
		}
	}
	return "", nil
}

// work is what an action does, apart from the loop.
func (s *Supervisor) work(a core.Action, d driver.Driver) func() error {
	switch a.Kind {
	case core.Start:
		spec := s.specs[a.Hash]
		spec.Generation = a.Generation
		return func() error { return d.Start(s.ctx, spec) }
	case core.Prepare:
		spec := s.specs[a.Hash]
		gap := slices.ContainsFunc(s.plan.pools, func(p core.Pool) bool { return p.Name == spec.Pool && p.ByGap() })
		return func() error {
			if p, ok := d.(driver.Preparer); ok {
				if err := p.Prepare(s.ctx, spec); err != nil {
					return err
				}
			}
			if gap {
				s.readAhead(s.ctx, spec)
			}
			return nil
		}
	case core.Stop:
		return func() error { return d.Stop(s.ctx, a.Worker, a.Generation, a.Grace) }
	case core.Warm:
		p, ok := s.probes[a.Worker]
		if !ok {
			return func() error { return nil }
		}
		url, key, want := p.url, p.key, s.plan.kinds[a.Worker].models
		return func() error { return warm(s.ctx, s.client, url, key, want) }
	}
	panic("BUG: action " + string(a.Kind))
}

// acted notes how the action of that number ended. Another may be under way on the
// same worker by then, a stop behind a warming, which is not ended by this.
func (s *Supervisor) acted(a core.Action, number uint64, err error) {
	if s.ctx.Err() != nil {
		return
	}
	if s.acting[a.Worker] == number {
		delete(s.acting, a.Worker)
	}
	if a.Kind == core.Prepare {
		if err != nil && s.again(a, err) {
			return
		}
		s.prepared[a.Key] = ""
		if err != nil {
			s.prepared[a.Key] = err.Error()
		}
		return
	}
	if a.Kind == core.Warm {
		if p, ok := s.probes[a.Worker]; ok && p.generation == a.Generation {
			p.warmed = err == nil
			if err != nil {
				p.warmError = err.Error()
			}
		}
		return
	}
	if err != nil {
		s.failures[a.Worker] = failure{a.Generation, err.Error(), s.missing(a.Worker, err)}
		s.log.Warn(string(a.Kind)+" failed", "worker", a.Worker, "error", err)
	}
}

// announce says once that something can be served.
func (s *Supervisor) announce() {
	if s.serving {
		return
	}
	for _, d := range s.doors {
		if d.state == nil || d.state.Phase != "ready" {
			continue
		}
		for _, w := range d.state.Workers {
			if w.State == "ready" && s.intent.Workers[w.ID].Phase == core.Ready {
				s.serving = true
				close(s.first)
				return
			}
		}
	}
}

// living counts the doors that may send requests to workers.
func (s *Supervisor) living() []*door {
	var out []*door
	for _, d := range s.doors {
		out = append(out, d)
	}
	return out
}

// acked says whether a door obeys the newest worker set.
func (s *Supervisor) acked(d *door, set *control.WorkerSet) bool {
	return set != nil && d.state != nil && d.state.Epoch == set.Epoch && d.state.Set >= set.Version
}
