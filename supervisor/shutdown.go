package supervisor

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
)

// Shutdown drains and ends the door, then the workers unless they are to be
// kept. When ctx ends it stops waiting for streams. Run's context is to be
// ended afterwards.
func (s *Supervisor) Shutdown(ctx context.Context, keepWorkers bool) error {
	if s.options.EndWithDoors {
		keepWorkers = s.doorAnswers(ctx)
	}
	patience := time.Minute
	err := s.ask(ctx, func() {
		s.conclude()
		s.events.note("", "", "shutdown", "asked to end")
		s.flushEvents()
		for _, p := range s.plan.pools {
			patience = max(patience, p.Drain)
		}
	})
	if err != nil {
		return err
	}
	var quiet <-chan struct{}
	if s.ask(ctx, func() { quiet = s.fleet.quiet() }) == nil {
		select {
		case <-quiet:
		case <-s.ctx.Done():
		case <-time.After(actsTime):
		}
	}
	soft, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = s.endFrom(soft, keepWorkers)
	if !keepWorkers {
		err = errors.Join(err, s.ask(context.WithoutCancel(ctx), s.rest))
	}
	if s.options.EndWithDoors && !keepWorkers {
		err = errors.Join(err, s.sweep(context.WithoutCancel(ctx)))
	}
	return err
}

// conclude has nothing begin any more. Our copy of the door's listener goes: once the
// door has closed its own, the kernel would take connections in that nobody answers.
func (s *Supervisor) conclude() {
	s.ending = true
	if s.gate.listen != nil {
		s.gate.listen.Close()
		s.gate.listen = nil
	}
}

// doorAnswers reports whether a door is there still.
func (s *Supervisor) doorAnswers(ctx context.Context) bool {
	for _, d := range s.gate.doors {
		var st control.State
		if d.get(ctx, "/state", &st) == nil {
			return true
		}
	}
	return false
}

// sweep has the drivers remove what ended workers have left.
func (s *Supervisor) sweep(ctx context.Context) error {
	var errs error
	for _, r := range s.runners {
		if sweeper, ok := r.driver.(interface{ Sweep(context.Context) error }); ok {
			errs = errors.Join(errs, sweeper.Sweep(ctx))
		}
	}
	return errs
}

// endAll ends everything within a few seconds.
func (s *Supervisor) endAll(patience time.Duration, keepWorkers bool) {
	s.conclude()
	quiet, late := s.fleet.quiet(), time.After(actsTime)
	for open := true; open; { // the loop has ended, and takes nothing any more
		select {
		case f := <-s.inbox:
			f()
		case <-quiet:
			open = false
		case <-late:
			open = false
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.endFrom(ctx, keepWorkers); err != nil {
		s.log.Error("cannot end everything", "error", err)
	}
	if !keepWorkers {
		s.rest()
	}
}

// actsTime is what starts that are under way have, so that what they start is there to
// be ended.
const actsTime = 5 * time.Second

// endFrom ends the door, politely as long as soft lasts, and then the workers.
func (s *Supervisor) endFrom(soft context.Context, keepWorkers bool) error {
	hard, cancel := context.WithTimeout(context.WithoutCancel(soft), remaining(soft)+5*time.Minute)
	defer cancel()
	errs := s.endDoors(soft, hard)
	if keepWorkers {
		return errs
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	for _, r := range s.runners {
		list, err := r.driver.List(hard)
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		for _, i := range list {
			if !i.Running || i.TakenOver {
				continue
			}
			group.Go(func() {
				err := s.endWorker(soft, hard, r.driver, i)
				mu.Lock()
				defer mu.Unlock()
				errs = errors.Join(errs, err)
			})
		}
	}
	group.Wait()
	return errs
}

// remaining is how long a context with a deadline still lasts.
func remaining(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		panic("BUG: a context without a deadline")
	}
	return max(0, time.Until(deadline))
}

func (s *Supervisor) endWorker(soft, hard context.Context, d driver.Driver, i driver.Instance) error {
	grace := 10 * time.Second
	if spec, ok := s.memory.specs[i.Hash]; ok && spec.Grace > 0 {
		grace = spec.Grace
	}
	if soft.Err() != nil {
		grace = min(grace, time.Second)
	}
	return d.Stop(hard, i.ID, i.Generation, grace)
}

// endDoors has our own doors drain and end.
func (s *Supervisor) endDoors(soft, hard context.Context) error {
	var group sync.WaitGroup
	var mu sync.Mutex
	var errs error
	for _, d := range s.gate.doors {
		if !d.child {
			continue
		}
		group.Go(func() {
			_, _, _ = d.ask(soft, http.MethodPost, "/shutdown", []byte("{}")) // the signal below says it again
			patience := remaining(soft)
			polite, cancel := context.WithTimeout(hard, patience)
			defer cancel()
			stop := context.AfterFunc(soft, cancel)
			defer stop()
			err := s.children.Stop(polite, doorPrefix+d.id, patience+time.Second)
			if polite.Err() != nil {
				err = s.children.Stop(hard, doorPrefix+d.id, time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			errs = errors.Join(errs, err)
		})
	}
	group.Wait()
	if len(s.options.Doors) == 0 && os.Geteuid() == 0 {
		errs = errors.Join(errs, os.RemoveAll(s.doorDir()), os.RemoveAll(s.tlsDir()))
	}
	return errs
}

// rest notes that what was running was stopped on purpose, so that the next
// supervisor starts it and tells of no crash.
func (s *Supervisor) rest() {
	next := s.memory.intent.Clone()
	for id, w := range next.Workers {
		switch w.Phase {
		case core.Quarantined, core.Stopped:
			continue
		}
		held := w.Then == core.ThenHold || w.Then == core.ThenStop
		w.Phase, w.Since, w.Reason, w.Then, w.NextTry = core.Stopped, s.clock.Now(), "waits to be started", core.ThenStart, time.Time{}
		if held {
			w.Then, w.Reason = "", "stopped by an operator"
		}
		next.Workers[id] = w
	}
	for name, r := range next.Rotations {
		if r.State == core.Running {
			r.State, r.Reason, r.Ended = core.Halted, "the supervisor was ended", s.clock.Now()
			next.Rotations[name] = r
		}
	}
	s.memory.remember(next)
}
