package supervisor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"roundhouse/configs/workerid"
	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
)

// beat is how often the loop looks even when nothing was told.
const beat = 200 * time.Millisecond

// loop owns the supervisor's state until ctx ends.
func (s *Supervisor) loop(ctx context.Context) error {
	s.began = s.clock.Now()
	for _, r := range s.runners {
		s.follow(r)
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
	s.gate.tend(s.clock.Now(), s.options.DoorAfter, &s.events)
	s.tendDoors()
	s.tendHandover()
	s.tendProbes()
	tendAdapters(s)
	s.replan()
	s.renewTLS()
	now := s.clock.Now()
	observed := s.observe(now)
	s.learn(observed, now)
	decision := core.Next(s.desired(), observed, now)
	for _, e := range decision.Events {
		s.events.note(e.Pool, e.Worker, e.Kind, e.Text)
		s.counters.count(e)
	}
	s.gate.noteCanaries(&s.events)
	s.counters.turns(s.memory.intent, decision.Intent, now)
	s.memory.remember(decision.Intent)
	s.flushEvents()
	s.forget()
	s.publish()
	if len(s.end) > 0 {
		return // nothing is begun that would have to be ended at once
	}
	if s.gate.heeded() {
		for _, a := range decision.Actions {
			s.act(a)
		}
	}
	s.announce()
}

func (s *Supervisor) desired() core.Desired {
	return core.Desired{Parallel: s.plan.config.Supervisor.Parallel, Pools: s.plan.pools, Intent: s.memory.intent}
}

// forget lets go of what is known of workers, drivers, preparations, pools and
// configurations that are there no more. It is the only place that does.
func (s *Supervisor) forget() {
	wanted := func(id string) bool {
		_, configured := s.plan.kinds[id]
		_, remembered := s.memory.intent.Workers[id]
		return configured || remembered
	}
	for _, r := range s.runners {
		r.forget(wanted)
	}
	s.fleet.take(s.runners)
	s.fleet.forget(wanted)
	s.preparing.forget(s.memory.intent)
	s.memory.forget(s.plan.specs)
	maps.DeleteFunc(s.trafficCounts, func(pool string, _ *trafficCount) bool { return !s.plan.has(pool) })
	s.retire()
}

// act begins an action; its end comes back to the loop after a fresh list, so
// that the next decision sees what it has done.
func (s *Supervisor) act(a core.Action) {
	r := s.runnerOf(a.Worker)
	if r == nil {
		return
	}
	if a.Kind == core.Prepare && s.fleet.of(a.Worker).act != 0 {
		return // it is under way, or begins once what is under way has ended
	}
	number := s.fleet.begin(a.Worker, a.Generation)
	work := s.work(a, r.driver)
	s.group.Go(func() {
		image, err := work()
		if err != nil || a.Kind != core.Warm && a.Kind != core.Prepare {
			s.list(s.ctx, r) // also of an error it is worth knowing whether the driver is there
		}
		s.tell(func() { s.acted(a, number, image, err) })
	})
}

// work is what an action does, apart from the loop. A preparation returns what the
// image's name stands for, where its driver knows.
func (s *Supervisor) work(a core.Action, d driver.Driver) func() (core.Image, error) {
	var none core.Image
	switch a.Kind {
	case core.Start:
		spec := s.memory.specs[a.Hash]
		spec.Generation = a.Generation
		return func() (core.Image, error) { return none, d.Start(s.ctx, spec) }
	case core.Prepare:
		spec := s.memory.specs[a.Hash]
		gap := slices.ContainsFunc(s.plan.pools, func(p core.Pool) bool { return p.Name == spec.Pool && p.ByGap() })
		return func() (core.Image, error) { return s.prepare(d, spec, gap) }
	case core.Stop:
		return func() (core.Image, error) {
			return none, d.Stop(s.ctx, a.Worker, a.Generation, a.Grace)
		}
	case core.Warm:
		p := s.fleet.of(a.Worker).probe
		if p == nil {
			return func() (core.Image, error) { return none, nil }
		}
		url, key, want := p.url, p.key, s.plan.kinds[a.Worker].models
		return func() (core.Image, error) { return none, warm(s.ctx, s.client, url, key, want) }
	}
	panic("BUG: action " + string(a.Kind))
}

// prepare prepares for a start; gap: while it lasts the pool has nobody.
func (s *Supervisor) prepare(d driver.Driver, spec driver.Spec, gap bool) (image core.Image, err error) {
	if p, ok := d.(driver.Preparer); ok {
		if err := p.Prepare(s.ctx, spec); err != nil {
			return image, err
		}
	}
	if r, ok := d.(driver.Resolver); ok {
		image.Name = spec.Container.Image
		if image.ID, err = r.Resolve(s.ctx, spec); err != nil {
			return image, err
		}
	}
	if gap {
		s.readAhead(s.ctx, spec)
	}
	return image, nil
}

// acted notes how the action of that number ended.
func (s *Supervisor) acted(a core.Action, number uint64, image core.Image, err error) {
	if s.ctx.Err() != nil {
		return
	}
	m := s.fleet.end(a.Worker, number)
	switch {
	case a.Kind == core.Prepare:
		s.preparing.ended(a.Key, err, s.missing(a.Worker, err))
		if err == nil && image.ID != "" {
			s.stands(workerid.Pool(a.Worker), image)
		}
	case a.Kind == core.Warm:
		if p := m.probe; p != nil && p.generation == a.Generation {
			p.warmed = err == nil
			if err != nil {
				p.warmError = err.Error()
			}
		}
	case err == nil && a.Kind == core.Start:
		m.launched = a.Generation
	case err != nil:
		m.failure = failure{a.Generation, err.Error(), s.missing(a.Worker, err)}
		s.log.Warn(string(a.Kind)+" failed", "worker", a.Worker, "error", err)
		if errors.Is(err, driver.ErrImageGone) {
			s.stands(workerid.Pool(a.Worker), core.Image{})
		}
	}
}
