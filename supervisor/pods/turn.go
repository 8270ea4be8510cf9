package pods

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// turn follows the pod whose turn it is.
func (s *step) turn(r *Rotation) {
	t := r.Turn
	p := s.pod(t.UID)
	if gone := p == nil || p.Leaving; gone && t.Stage != Replacing && t.Stage != Proving {
		s.replace(t, p) // by somebody else's hand
	}
	switch t.Stage {
	case Asking:
		s.ask(r)
	case Draining:
		s.drain(r, p)
	case Evicting:
		s.evict(r, p)
	case Replacing:
		s.await(r)
	case Proving:
		s.prove(r)
	}
}

func (t *Turn) to(stage Stage, now time.Time) { t.Stage, t.Since = stage, now }

// granted reports whether an answer says that the pod goes, or is gone.
func granted(a Answer) bool {
	return a.Status >= 200 && a.Status < 300 || a.Status == http.StatusNotFound || a.Status == http.StatusConflict
}

// ask asks whether the pod may be evicted, while it still serves.
func (s *step) ask(r *Rotation) {
	t := r.Turn
	a, known := s.seen.Answers[Key{Ask, t.UID}]
	switch {
	case !known || a.At.Before(t.Since):
	case granted(a):
		r.Waiting, r.Why = time.Time{}, ""
		t.Deadline = s.now.Add(s.pool.Drain)
		t.to(Draining, s.now)
		s.event(t.Name, "turn", "drains until %s; rotation %d", t.Deadline.UTC().Format(time.RFC3339), r.ID)
		s.act(Mark, t.Named, t.Deadline)
		return
	default:
		why, final := refused(a)
		if final {
			s.halt(r, t.Name+": "+why)
			return
		}
		if s.wait(r, t.Name+": "+why); r.State != Running {
			return
		}
		if other := s.obstacle(t.Named); other != "" { // what was whole need not be any more
			r.Queue, r.Turn = append([]Named{t.Named}, r.Queue...), nil
			return
		}
	}
	s.act(Ask, t.Named, time.Time{})
}

// drain waits until the pod is idle, or its time is over.
func (s *step) drain(r *Rotation, p *Pod) {
	t := r.Turn
	over := s.now.After(t.Deadline.Add(s.times.Moves))
	switch {
	case p.Marked.IsZero():
		t.Since = s.now // it counts from when the mark is seen
		s.act(Mark, t.Named, t.Deadline)
		if over {
			s.halt(r, t.Name+" could not be marked: "+s.seen.Answers[Key{Mark, t.UID}].Message)
		}
		return
	case over:
		s.event(t.Name, "drain_forced", "requests were left at the drain's deadline")
	case !p.Idle || s.now.Sub(t.Since) < s.times.Settles:
		return
	}
	t.to(Evicting, s.now)
	s.act(Evict, t.Named, time.Time{})
}

// evict waits until the eviction is granted.
func (s *step) evict(r *Rotation, p *Pod) {
	t := r.Turn
	a, known := s.seen.Answers[Key{Evict, t.UID}]
	switch {
	case !known || a.At.Before(t.Since):
	case granted(a):
		s.event(t.Name, "evicted", "rotation %d", r.ID)
		s.replace(t, p)
		return
	default:
		why, final := refused(a)
		if final {
			s.halt(r, t.Name+": "+why)
			return
		}
		if s.wait(r, t.Name+": "+why); r.State != Running {
			return
		}
	}
	s.act(Evict, t.Named, time.Time{})
}

// replace waits for the pod's successor from now on.
func (s *step) replace(t *Turn, p *Pod) {
	t.to(Replacing, s.now)
	t.Deadline = s.now.Add(s.pool.Ready)
	if p != nil {
		t.Deadline = t.Deadline.Add(p.Grace)
	}
}

// await waits for a pod that was not there before and is ready.
func (s *step) await(r *Rotation) {
	t := r.Turn
	r.Waiting, r.Why = time.Time{}, ""
	whole, why := true, "no pod has come in its place"
	for _, p := range s.seen.Pods {
		whole = whole && !p.Leaving && p.Ready
		if p.Leaving || slices.Contains(t.Known, p.UID) {
			continue
		}
		if p.serves() {
			t.Next, t.Restarts = Named{p.Name, p.UID}, p.Restarts
			t.to(Proving, s.now)
			return
		}
		why = p.Name + " is not ready"
		if p.Failing != "" {
			why = p.Name + " gets no requests: " + p.Failing
		}
	}
	switch {
	case !whole || len(s.seen.Pods) == 0 || len(s.seen.Pods) >= len(t.Known):
		t.Since = s.now
	case s.now.Sub(t.Since) >= s.times.Shrunk && len(s.seen.Pods) >= s.pool.MinReady:
		s.turned(r, "its owner runs fewer pods now")
		return
	}
	if s.now.After(t.Deadline) {
		s.halt(r, fmt.Sprintf("the place of %s is empty after ready_timeout (%v): %s", t.Name, s.pool.Ready, why))
	}
}

// prove watches the successor for a while.
func (s *step) prove(r *Rotation) {
	t := r.Turn
	p := s.pod(t.Next.UID)
	switch {
	case p == nil || p.Leaving: // its owner wants another
		t.Next = Named{}
		t.to(Replacing, s.now)
	case p.Restarts > t.Restarts:
		s.halt(r, p.Name+", which took the place of "+t.Name+", was started again soon after it was ready")
	case !p.Ready:
		s.halt(r, p.Name+", which took the place of "+t.Name+", is not ready any more")
	case p.Failing != "":
		s.halt(r, p.Name+", which took the place of "+t.Name+", gets no requests: "+p.Failing)
	case s.now.Sub(t.Since) >= s.times.Proof:
		s.turned(r, p.Name+" has taken its place")
	}
}

// turned ends a turn.
func (s *step) turned(r *Rotation, how string) {
	s.event(r.Turn.Name, "turned", "%s; rotation %d", how, r.ID)
	r.Done, r.Turn = append(r.Done, r.Turn.Name), nil
}
