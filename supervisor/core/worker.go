package core

import (
	"fmt"
	"time"

	"roundhouse/configs/workerid"
)

// worker takes one worker's next step in its life.
func (s *step) worker(p *Pool, spec *Spec) {
	id := workerid.Of(p.Name, spec.Name)
	w, known := s.in.Workers[id]
	if !known {
		return // its driver does not answer, and nothing is known of it
	}
	if spec.Static {
		s.static(id, &w, p)
		s.in.Workers[id] = w
		return
	}
	seen := s.o.Workers[id]
	if seen.Process == Unknown { // what cannot be seen is left alone
		if w.Away.IsZero() {
			w.Away = s.now
			s.in.Workers[id] = w
		}
		return
	}
	s.back(&w)
	if w.Then == ThenRemove {
		w.Then = ThenStart // it is configured again while it leaves
	}
	switch w.Phase {
	case Starting:
		s.starting(id, &w, p, spec)
	case Warming:
		s.warming(id, &w, p, spec)
	case Ready:
		s.ready(id, &w, p, spec)
	case Draining, Drained:
		s.ending(id, &w, p.Grace)
	case Stopped, Failed, Quarantined:
		if seen.Process == Alive && !seen.Busy && seen.Acked && s.obeyed() {
			old := w
			old.Generation = seen.Generation
			s.act(Stop, id, old, p.Grace)
		}
	default:
		panic(fmt.Sprintf("BUG: worker %s is in phase %q", id, w.Phase))
	}
	s.in.Workers[id] = w
}

// static follows a worker that someone else runs.
func (s *step) static(id string, w *Worker, p *Pool) {
	seen := s.o.Workers[id]
	switch {
	case w.Phase == Draining && seen.Acked && seen.InFlight == 0:
		s.to(w, Drained, w.Reason)
	case w.Phase == Draining, w.Phase == Drained:
	case seen.Healthy && w.Phase != Ready:
		w.Generation++
		w.LastError, w.Then, w.Started = "", "", s.now
		s.to(w, Ready, "answers")
		s.event(p.Name, id, "ready", "generation %d answers", w.Generation)
	case seen.Down && w.Phase == Ready, !seen.Healthy && seen.Unhealthy != "" && w.Phase == Stopped:
		w.LastError = seen.Unhealthy
		s.to(w, Failed, "does not answer: "+seen.Unhealthy)
		s.event(p.Name, id, "lost", "does not answer: %s", seen.Unhealthy)
	}
}

func (s *step) starting(id string, w *Worker, p *Pool, spec *Spec) {
	seen := s.o.Workers[id]
	if w.Deadline.IsZero() && (seen.Process == Alive && seen.Generation >= w.Generation || seen.Launched) { // an image took its own time
		w.Launched, w.Deadline = s.now, s.now.Add(p.Ready)
	}
	switch {
	case seen.Process == Alive && (seen.Generation > w.Generation || seen.Generation == w.Generation && seen.Hash != w.Hash && seen.Hash != ""):
		w.Generation, w.Hash = seen.Generation, seen.Hash // another supervisor's
	case seen.Process == Alive && seen.Generation < w.Generation:
		if !seen.Busy && seen.Acked && s.obeyed() { // a predecessor that should be gone
			old := *w
			old.Generation = seen.Generation
			s.act(Stop, id, old, p.Grace)
		}
	case seen.Process == Alive && seen.Leaving != "" && !seen.Busy:
		s.departs(id, w, p, seen)
	case seen.Process == Alive && seen.Healthy:
		s.to(w, Warming, w.Reason)
	case seen.Busy: // a container that is made and not yet started looks ended
	case seen.Interrupted && seen.Process != Alive && (seen.Failure != "" || seen.Process == Exited && seen.Generation == w.Generation):
		s.interrupted(id, w, p, seen)
	case seen.Process == Exited && seen.Generation == w.Generation:
		s.failed(id, w, p, spec, "ended before it was ready: "+seen.Exit)
	case seen.Failure != "":
		s.failed(id, w, p, spec, seen.Failure)
	case s.late(w):
		why := fmt.Sprintf("not ready within ready_timeout (%v)", p.Ready)
		if seen.Unhealthy != "" {
			why += ": " + seen.Unhealthy
		}
		s.failed(id, w, p, spec, why)
	case seen.Process != Alive:
		s.act(Start, id, *w, 0)
	}
}

// late reports whether a start's time limit has passed.
func (s *step) late(w *Worker) bool { return !w.Deadline.IsZero() && s.now.After(w.Deadline) }

func (s *step) warming(id string, w *Worker, p *Pool, spec *Spec) {
	seen := s.o.Workers[id]
	switch {
	case seen.Process != Alive && seen.Interrupted:
		s.interrupted(id, w, p, seen)
	case seen.Process != Alive:
		s.failed(id, w, p, spec, "ended in its warm-up: "+seen.Exit)
	case seen.Generation != w.Generation:
		s.to(w, Starting, w.Reason)
	case seen.Leaving != "":
		s.departs(id, w, p, seen)
	case seen.WarmError != "":
		s.failed(id, w, p, spec, "warm-up: "+seen.WarmError)
	case seen.Warmed && seen.Reached:
		w.Failures, w.LastError, w.Started, w.Deadline, w.Interrupted = 0, "", s.now, time.Time{}, false
		if !w.Launched.IsZero() {
			w.Took = s.now.Sub(w.Launched)
		}
		if w.Good == "" {
			w.Good = w.Hash // there is nothing to go back to
		}
		s.to(w, Ready, "")
		s.event(p.Name, id, "ready", "generation %d", w.Generation)
	case s.late(w) && !seen.Warmed:
		s.failed(id, w, p, spec, fmt.Sprintf("answered no request within ready_timeout (%v)", p.Ready))
	case s.late(w) && s.o.Doors > 0 && seen.Acked:
		s.failed(id, w, p, spec, "is healthy, but the door cannot reach it")
	case !seen.Warmed && !seen.Busy:
		s.act(Warm, id, *w, 0)
	}
}

func (s *step) ready(id string, w *Worker, p *Pool, spec *Spec) {
	seen := s.o.Workers[id]
	if w.Crashes > 0 && s.now.Sub(w.Started) > settled {
		w.Crashes = 0
	}
	ended := seen.Process == Exited || seen.Process == Absent
	switch {
	case ended && seen.Interrupted:
		s.interrupted(id, w, p, seen)
		return
	case w.Hash != w.Good && ended:
		s.failed(id, w, p, spec, "ended soon after it was ready: "+seen.Exit)
		return
	case w.Hash != w.Good && s.now.Sub(w.Started) >= p.Proven:
		w.Former, w.Good = w.Good, w.Hash
	}
	if r := s.in.Rotations[p.Name]; r.State != Running || r.Current != spec.Name && r.Canary != spec.Name {
		w.Former = ""
	}
	switch {
	case seen.Process == Alive && seen.Generation != w.Generation:
		s.crashed(id, w, p, seen, fmt.Sprintf("generation %d runs where %d should", seen.Generation, w.Generation))
	case seen.Process == Exited:
		s.crashed(id, w, p, seen, seen.Exit)
	case seen.Process == Absent:
		s.crashed(id, w, p, seen, "it is gone")
	case seen.Leaving != "":
		s.departs(id, w, p, seen)
	case seen.Hung:
		s.abandon(id, w, p, "hung: it has requests and makes no progress")
	case seen.Down:
		s.abandon(id, w, p, "does not answer: "+seen.Unhealthy)
	}
}

// abandon restarts a worker that is of no use. Its drain's deadline is now:
// the doors resume its streams elsewhere at once.
func (s *step) abandon(id string, w *Worker, p *Pool, why string) {
	w.LastError, w.Then, w.Deadline = why, ThenStart, s.now
	w.Crashes++
	s.to(w, Draining, why)
	s.event(p.Name, id, "abandoned", "%s", why)
}

// departs drains a worker whose process is about to end by somebody else's hand, for
// as long as that lets its requests run, and starts it anew, wherever that is.
func (s *step) departs(id string, w *Worker, p *Pool, seen Seen) {
	w.LastError, w.Then, w.Deadline = seen.Leaving, ThenStart, s.now.Add(min(p.Drain, seen.LeavesIn))
	s.to(w, Draining, seen.Leaving)
	s.event(p.Name, id, "leaving", "%s; it drains, and starts again", seen.Leaving)
}

// failed ends a start that came to nothing.
func (s *step) failed(id string, w *Worker, p *Pool, spec *Spec, why string) {
	w.Failures++
	w.LastError, w.Deadline, w.Then, w.Interrupted = why, time.Time{}, "", false
	if w.Good != "" && w.Hash != w.Good {
		s.reject(p, w.Hash)
		w.NextTry = s.now
		s.to(w, Failed, "goes back to what it ran before: "+why)
		s.event(p.Name, id, "rolled_back", "generation %d with the new configuration: %s; it goes back", w.Generation, why)
		return
	}
	if spec.Device && w.Failures >= 2 {
		s.to(w, Quarantined, why)
		s.event(p.Name, id, "quarantined", "its device failed %d starts: %s; `start` tries again", w.Failures, why)
		return
	}
	w.NextTry = s.now.Add(backoff(w.Failures))
	s.to(w, Failed, why)
	s.event(p.Name, id, "failed", "generation %d: %s; next try in %v", w.Generation, why, backoff(w.Failures))
}

// reject keeps a configuration from being tried again by itself.
func (s *step) reject(p *Pool, hash string) {
	c := s.in.Pools[p.Name]
	rejected := map[string]bool{hash: true}
	for h := range c.Rejected {
		rejected[h] = true
	}
	c.Rejected = rejected
	s.in.Pools[p.Name] = c
}

// ending takes a worker from draining to what follows. A worker to be removed
// ends with the empty phase.
func (s *step) ending(id string, w *Worker, grace time.Duration) {
	seen := s.o.Workers[id]
	dead := seen.Process == Exited || seen.Process == Absent
	if w.Phase != Drained {
		if !s.drained(id, w, seen, dead) {
			return
		}
		s.to(w, Drained, w.Reason)
	}
	if w.Then == ThenHold {
		if dead {
			w.Then = ""
			s.to(w, Stopped, "ended while it was drained: "+seen.Exit)
		}
		return
	}
	if seen.Process == Alive {
		if !seen.Busy && seen.Acked && s.obeyed() {
			old := *w
			old.Generation = seen.Generation
			s.act(Stop, id, old, grace)
		}
		return
	}
	if !dead || seen.Busy || !seen.Released {
		return
	}
	w.Deadline = time.Time{}
	switch w.Then {
	case ThenStop:
		w.Then = ""
		s.to(w, Stopped, w.Reason)
		s.event(workerid.Pool(id), id, "stopped", "%s", w.Reason)
	case ThenRemove:
		*w = Worker{}
	default:
		s.to(w, Stopped, w.Reason)
	}
}

// drained reports whether a draining worker has nothing left to lose.
func (s *step) drained(id string, w *Worker, seen Seen, dead bool) bool {
	if dead {
		return true
	}
	if !seen.Acked || seen.Generation != w.Generation {
		return seen.Acked // a stranger's process has no requests of ours
	}
	if seen.InFlight == 0 {
		return true
	}
	if s.now.Before(w.Deadline.Add(resumeTime)) {
		return false
	}
	w.Forced = true
	s.event(workerid.Pool(id), id, "drain_forced", "%d requests were left at the drain's deadline", seen.InFlight)
	return true
}
