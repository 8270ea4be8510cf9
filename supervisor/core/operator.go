package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"roundhouse/configs/workerid"
)

// The errors of an operator's commands.
var (
	// ErrUnknown is returned for a worker or pool that is not configured.
	ErrUnknown = errors.New("not configured")
	// ErrState is the kind of every Conflict.
	ErrState = errors.New("the command does not fit the present state")
)

// Conflict is the error of a command that does not fit the present state. Its text
// says why; errors.Is finds ErrState in it.
type Conflict string

// Conflictf makes a Conflict.
func Conflictf(format string, args ...any) Conflict { return Conflict(fmt.Sprintf(format, args...)) }

func (c Conflict) Error() string { return string(c) }

// Is reports whether target is ErrState.
func (c Conflict) Is(target error) bool { return target == ErrState }

func (d *Desired) pool(name string) (*Pool, error) {
	for i := range d.Pools {
		if d.Pools[i].Name == name {
			return &d.Pools[i], nil
		}
	}
	return nil, fmt.Errorf("pool %q: %w", name, ErrUnknown)
}

func (d *Desired) worker(pool, name string) (*Pool, Worker, error) {
	p, err := d.pool(pool)
	if err != nil {
		return nil, Worker{}, err
	}
	w, ok := d.Intent.Workers[workerid.Of(pool, name)]
	if !ok || !slices.ContainsFunc(p.Workers, func(s Spec) bool { return s.Name == name }) {
		return nil, Worker{}, fmt.Errorf("worker %q: %w", workerid.Of(pool, name), ErrUnknown)
	}
	return p, w, nil
}

// with returns the Intent with one worker changed.
func (d *Desired) with(id string, w Worker, phase Phase, reason string, now time.Time) Intent {
	in := d.Intent.Clone()
	w.Phase, w.Since, w.Reason = phase, now, reason
	in.Workers[id] = w
	return in
}

// Drain takes a worker out of service and keeps it running.
func Drain(d Desired, pool, name, who string, now time.Time) (Intent, error) {
	p, w, err := d.worker(pool, name)
	if err != nil {
		return d.Intent, err
	}
	if (w.Phase == Draining || w.Phase == Drained) && w.Then == ThenHold {
		return d.Intent, nil
	}
	if w.Phase != Ready {
		return d.Intent, Conflictf("%s is %s; only a ready worker drains", workerid.Of(pool, name), w.Phase)
	}
	w.Then, w.Deadline = ThenHold, now.Add(p.Drain)
	return d.with(workerid.Of(pool, name), w, Draining, "drained by "+who, now), nil
}

// Undrain returns a draining or drained worker to service; a worker that
// never was in service goes on with its start.
func Undrain(d Desired, pool, name, who string, now time.Time) (Intent, error) {
	p, w, err := d.worker(pool, name)
	if err != nil {
		return d.Intent, err
	}
	if w.Phase == Ready {
		return d.Intent, nil
	}
	if w.Phase != Draining && (w.Phase != Drained || w.Then != ThenHold) {
		return d.Intent, Conflictf("%s is %s; only a draining or drained worker undrains", workerid.Of(pool, name), w.Phase)
	}
	w.Then, w.Deadline = "", time.Time{}
	phase := Ready
	if w.Started.IsZero() {
		phase, w.Deadline = Starting, now.Add(p.Ready)
	}
	return d.with(workerid.Of(pool, name), w, phase, "undrained by "+who, now), nil
}

// StopWorker drains a worker and stops it until it is started by hand.
func StopWorker(d Desired, pool, name, who string, now time.Time) (Intent, error) {
	p, w, err := d.worker(pool, name)
	if err != nil {
		return d.Intent, err
	}
	reason := "stopped by " + who
	switch {
	case w.Phase == Stopped && w.Then == "":
		return d.Intent, nil
	case w.Phase == Ready:
		w.Deadline = now.Add(p.Drain)
	case w.Phase == Draining:
	case w.Phase == Drained, w.Phase == Starting, w.Phase == Warming:
		w.Deadline = now
	default:
		w.Then, w.NextTry, w.Failures, w.Crashes = "", time.Time{}, 0, 0
		return d.with(workerid.Of(pool, name), w, Stopped, reason, now), nil
	}
	w.Then = ThenStop
	return d.with(workerid.Of(pool, name), w, Draining, reason, now), nil
}

// StartWorker starts a worker that is stopped, failed or in quarantine.
func StartWorker(d Desired, pool, name, who string, now time.Time) (Intent, error) {
	_, w, err := d.worker(pool, name)
	if err != nil {
		return d.Intent, err
	}
	switch {
	case w.Phase == Stopped, w.Phase == Failed, w.Phase == Quarantined:
		w.Then, w.NextTry, w.Failures, w.Crashes = ThenStart, time.Time{}, 0, 0
		return d.with(workerid.Of(pool, name), w, Stopped, "started by "+who, now), nil
	case (w.Phase == Draining || w.Phase == Drained) && w.Then == ThenStop:
		w.Then = ThenStart
		return d.with(workerid.Of(pool, name), w, w.Phase, "started by "+who, now), nil
	case w.Phase == Drained && w.Then == ThenHold:
		return d.Intent, Conflictf("%s runs and is drained; undrain it", workerid.Of(pool, name))
	}
	return d.Intent, nil
}

// Rotate begins a rotation of the named workers, or of all where names is
// empty. It returns the rotation's number.
func Rotate(d Desired, pool string, which []string, now time.Time) (Intent, error) {
	p, err := d.pool(pool)
	if err != nil {
		return d.Intent, err
	}
	if r, ok := d.Intent.Rotations[pool]; ok && r.State == Running {
		return d.Intent, Conflictf("rotation %d of %s is running (%s)", r.ID, pool, r.Cause)
	}
	if len(which) == 0 {
		which = names(p)
	}
	for _, name := range which {
		if _, _, err := d.worker(pool, name); err != nil {
			return d.Intent, err
		}
	}
	if len(names(p)) == 0 {
		return d.Intent, Conflictf("%s is run by someone else (driver \"static\")", pool)
	}
	s := &step{d: d, now: now, in: d.Intent.Clone()}
	s.rotate(p, Operator, which)
	return s.in, nil
}

// Continue takes up a halted or rolled-back rotation where it ended; refused
// settings are tried once more.
func Continue(d Desired, pool string, now time.Time) (Intent, error) {
	if _, err := d.pool(pool); err != nil {
		return d.Intent, err
	}
	r, ok := d.Intent.Rotations[pool]
	if !ok || r.State != Halted && r.State != RolledBack {
		return d.Intent, Conflictf("no rotation of %s is halted", pool)
	}
	in := d.Intent.Clone()
	c := in.Pools[pool]
	c.Rejected = nil
	in.Pools[pool] = c
	r = in.Rotations[pool]
	r.State, r.Reason, r.Ended, r.Waiting, r.Back = Running, "", time.Time{}, time.Time{}, false
	in.Rotations[pool] = r
	return in, nil
}

// Abort ends a rotation. The worker whose turn it is comes back by itself:
// undrained where it still drains, else started.
func Abort(d Desired, pool, who string, now time.Time) (Intent, error) {
	p, err := d.pool(pool)
	if err != nil {
		return d.Intent, err
	}
	r, ok := d.Intent.Rotations[pool]
	if !ok || r.State == Done || r.State == RolledBack {
		return d.Intent, Conflictf("no rotation of %s is running or halted", pool)
	}
	s := &step{d: d, now: now, in: d.Intent.Clone()}
	id := workerid.Of(pool, r.Current)
	if w, ok := s.in.Workers[id]; ok && r.Current != "" && w.Phase == Draining && w.Then == ThenStart {
		w.Then, w.Deadline = "", time.Time{}
		s.to(&w, Ready, "its rotation was aborted")
		s.in.Workers[id] = w
	}
	r = s.in.Rotations[pool]
	r.Queue = nil
	s.end(p, &r, Halted, "aborted by "+who)
	s.in.Rotations[pool] = r
	return s.in, nil
}
