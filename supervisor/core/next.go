package core

import (
	"fmt"
	"sort"
	"time"

	"roundhouse/configs/workerid"
)

// leaseMargin is how long the doors' lease must still last when a worker's
// stop begins. It is renewed every second; this covers a slow signal.
const leaseMargin = 2 * time.Second

// resumeTime is the time that the doors have after a drain's deadline to resume
// the remaining streams elsewhere.
const resumeTime = 10 * time.Second

// Kind is the kind of an Action.
type Kind string

// The kinds of action.
const (
	Start Kind = "start"
	Stop  Kind = "stop"
	Warm  Kind = "warm" // ask for one real completion
	// Prepare sees to it, before anything is drained, that a start can work:
	// the image is pulled, the files are there.
	Prepare Kind = "prepare"
)

// Action is something to do on one worker. Doing it twice does no harm.
type Action struct {
	Kind       Kind
	Worker     string // pool/name
	Generation uint64 // of the process that it is about
	Hash       string // Start: of the settings
	Grace      time.Duration
	Key        string // Prepare: the outcome is noted under it
}

// Event is something worth telling, for people.
type Event struct {
	Pool   string
	Worker string // empty: about the pool
	Kind   string // what happened, one word
	Text   string // why, with the evidence
}

// Decision is the result of Next. Intent is written down before any action.
type Decision struct {
	Intent  Intent
	Actions []Action
	Events  []Event
}

// Next decides the next actions. It leaves its arguments as they are.
func Next(d Desired, o Observed, now time.Time) Decision {
	s := &step{d: d, o: o, now: now, in: d.Intent.Clone()}
	s.d.Pools = s.relieved()
	s.join()
	for i := range s.d.Pools {
		for j := range s.d.Pools[i].Workers {
			s.worker(&s.d.Pools[i], &s.d.Pools[i].Workers[j])
		}
	}
	s.leave()
	for i := range s.d.Pools {
		s.rotation(&s.d.Pools[i])
	}
	s.begin()
	return Decision{Intent: s.in, Actions: s.actions, Events: s.events}
}

// step is one decision in the making.
type step struct {
	d       Desired
	o       Observed
	now     time.Time
	in      Intent
	actions []Action
	events  []Event
	preview bool // nothing is done; the outcome alone is wanted
}

func (s *step) event(pool, worker, kind, format string, args ...any) {
	s.events = append(s.events, Event{Pool: pool, Worker: worker, Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// obeyed reports whether the doors obey this supervisor, and will for as long as
// a signal takes.
func (s *step) obeyed() bool {
	return s.o.Doors == 0 || s.o.Lease.After(s.now.Add(leaseMargin))
}

func (s *step) act(kind Kind, id string, w Worker, grace time.Duration) {
	s.actions = append(s.actions, Action{Kind: kind, Worker: id, Generation: w.Generation, Hash: w.Hash, Grace: grace})
}

// to moves a worker to another phase.
func (s *step) to(w *Worker, phase Phase, reason string) {
	w.Phase, w.Since, w.Reason = phase, s.now, reason
}

// join gives every configured worker a record. One whose process runs already
// (the journal was lost) is taken in as it is, and shows that it is healthy.
func (s *step) join() {
	for _, p := range s.d.Pools {
		for _, spec := range p.Workers {
			id := workerid.Of(p.Name, spec.Name)
			seen := s.o.Workers[id]
			if _, known := s.in.Workers[id]; known || seen.Process == Unknown && !spec.Static {
				continue
			}
			w := Worker{Phase: Stopped, Since: s.now, Then: ThenStart, Reason: "waits to be started", Hash: spec.Hash}
			if seen.Process == Alive && !spec.Static {
				w.Generation, w.Hash, w.Then = seen.Generation, seen.Hash, ""
				w.Launched, w.Deadline = s.now, s.now.Add(p.Ready)
				s.to(&w, Starting, "found running")
				s.event(p.Name, id, "adopted", "found running in generation %d", seen.Generation)
			}
			s.in.Workers[id] = w
		}
	}
	// A running worker that is neither configured nor remembered is taken in as
	// well, so that it leaves in order.
	for _, id := range sortedKeys(s.o.Workers) {
		seen := s.o.Workers[id]
		if _, known := s.in.Workers[id]; known || seen.Process != Alive || seen.Generation == 0 {
			continue
		}
		s.in.Workers[id] = Worker{Phase: Starting, Since: s.now, Reason: "found running", Generation: seen.Generation, Hash: seen.Hash}
		s.event(workerid.Pool(id), id, "adopted", "found running in generation %d", seen.Generation)
	}
}

// leave takes the workers that the configuration no longer has out of service.
func (s *step) leave() {
	wanted := map[string]bool{}
	reliefs := map[string]*Pool{}
	for i := range s.d.Pools {
		p := &s.d.Pools[i]
		for _, spec := range p.Workers {
			wanted[workerid.Of(p.Name, spec.Name)] = true
		}
		reliefs[workerid.Of(p.Name, Relief)] = p
	}
	for _, id := range sortedKeys(s.in.Workers) {
		if wanted[id] {
			continue
		}
		w := s.in.Workers[id]
		why, wait, grace := "no longer configured", 10*time.Minute, time.Minute
		if p := reliefs[id]; p != nil {
			why, wait, grace = "its rotation has ended", p.Drain, p.Grace
		}
		if w.Then != ThenRemove {
			w.Then = ThenRemove
			s.to(&w, Draining, why)
			w.Deadline = s.now.Add(wait)
			s.event(workerid.Pool(id), id, "removed", "%s; it drains and stops", why)
			s.in.Workers[id] = w
			continue // the doors have acknowledged the set before this one
		}
		s.ending(id, &w, grace)
		if w.Phase != "" {
			s.in.Workers[id] = w
		} else {
			delete(s.in.Workers, id)
		}
	}
}

// sortedKeys makes every walk over a map the same walk, so that a seed gives
// the same run.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
