package pods

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// step is one decision.
type step struct {
	pool   *Pool
	times  Times
	now    time.Time
	seen   Seen
	acts   []Act
	events []Event
}

// Next says what is to be done now, and what to remember. in is not changed.
func Next(p *Pool, in State, seen Seen, now time.Time) (State, []Act, []Event) {
	s := &step{pool: p, times: p.Times.filled(), now: now, seen: seen}
	in.Rotation = in.Rotation.clone()
	s.schedule(&in)
	if r := in.Rotation; r != nil && r.State == Running {
		if r.Turn != nil {
			s.turn(r)
		}
		if r.State == Running && r.Turn == nil {
			s.begin(r)
		}
	}
	s.unmark(in.Rotation)
	return in, s.acts, s.events
}

func (r *Rotation) clone() *Rotation {
	if r == nil {
		return nil
	}
	c := *r
	c.Queue, c.Done = slices.Clone(r.Queue), slices.Clone(r.Done)
	if r.Turn != nil {
		t := *r.Turn
		t.Known = slices.Clone(t.Known)
		c.Turn = &t
	}
	return &c
}

// schedule begins a rotation when the plan says so.
func (s *step) schedule(in *State) {
	v := s.pool.Plan.Due(in.LastRun, s.now)
	// A time that only says that nothing was due is not worth a write.
	if v.Run || v.Missed > 0 || in.LastRun.IsZero() || v.Last.Before(in.LastRun) || v.Last.Sub(in.LastRun) > time.Hour {
		in.LastRun = v.Last
	}
	if v.Missed > 0 {
		s.event("", "missed", "%d scheduled rotations were missed", v.Missed)
	}
	switch {
	case !v.Run:
	case in.Rotation != nil && in.Rotation.State == Running:
		s.event("", "missed", "rotation %d is still running", in.Rotation.ID)
	default:
		cause := "schedule"
		if v.Late {
			cause = "schedule (late)"
		}
		s.rotate(in, cause, s.names())
	}
}

// names are the pods that can have a turn.
func (s *step) names() (all []Named) {
	for _, p := range s.seen.Pods {
		if !p.Leaving {
			all = append(all, Named{p.Name, p.UID})
		}
	}
	return all
}

// rotate begins a rotation of the named pods.
func (s *step) rotate(in *State, cause string, queue []Named) {
	if len(queue) == 0 {
		return
	}
	in.Counter++
	in.Rotation = &Rotation{ID: in.Counter, Cause: cause, State: Running, Queue: queue, Began: s.now}
	s.event("", "rotation", "%d begins: %s", in.Counter, cause)
}

// begin begins the next turn, if that harms nobody.
func (s *step) begin(r *Rotation) {
	for len(r.Queue) > 0 {
		if p := s.pod(r.Queue[0].UID); p != nil && !p.Leaving {
			break
		}
		r.Queue = r.Queue[1:] // somebody else has replaced it, or is about to
	}
	if len(r.Queue) == 0 {
		s.end(r, Done, "")
		return
	}
	next := r.Queue[0]
	if why := s.obstacle(next); why != "" {
		s.wait(r, why)
		return
	}
	known := make([]string, 0, len(s.seen.Pods))
	for _, p := range s.seen.Pods {
		known = append(known, p.UID)
	}
	r.Queue, r.Waiting, r.Why = r.Queue[1:], time.Time{}, ""
	r.Turn = &Turn{Named: next, Stage: Asking, Since: s.now, Known: known}
	s.ask(r)
}

// obstacle says why a pod's turn cannot begin; empty: it can.
func (s *step) obstacle(next Named) string {
	if s.pool.Plan.Blocked(s.now) {
		return blackout
	}
	serving, least := 0, s.pool.MinReady
	for _, p := range s.seen.Pods {
		switch {
		case p.UID == next.UID:
		case p.Leaving:
			return p.Name + " is leaving"
		case !p.Ready:
			return p.Name + " is not ready"
		case p.Failing != "":
			return p.Name + " gets no requests: " + p.Failing
		case p.serves():
			serving++
		}
	}
	if least < 0 {
		least = len(s.seen.Pods) - 1
	}
	if serving < least {
		return fmt.Sprintf("%d other pods serve, and min_ready is %d", serving, least)
	}
	return ""
}

const blackout = "a blackout"

// wait notes why the rotation cannot go on, and gives up after a while.
func (s *step) wait(r *Rotation, why string) {
	if r.Waiting.IsZero() {
		r.Waiting = s.now
	}
	r.Why = why
	// A blackout ends by itself, and no other wait is worth more than a turn's own two
	// time limits.
	if why != blackout && s.now.Sub(r.Waiting) > s.pool.Drain+s.pool.Ready {
		s.halt(r, "waited too long: "+why)
	}
}

// halt ends a rotation in the middle; the pods that had no turn yet stay in its queue.
func (s *step) halt(r *Rotation, why string) {
	if t := r.Turn; t != nil && (t.Stage == Asking || t.Stage == Draining || t.Stage == Evicting) {
		r.Queue = append([]Named{t.Named}, r.Queue...)
	}
	s.end(r, Halted, why)
}

func (s *step) end(r *Rotation, state Phase, why string) {
	r.State, r.Reason, r.Ended, r.Turn, r.Why, r.Waiting = state, why, s.now, nil, "", time.Time{}
	if why == "" {
		why = fmt.Sprintf("%d pods", len(r.Done))
	}
	s.event("", "rotation", "%d is %s: %s", r.ID, state, why)
}

// unmark takes marks off that no turn owns: of a turn that was halted, or whose State was
// lost.
func (s *step) unmark(r *Rotation) {
	for _, p := range s.seen.Pods {
		owned := r != nil && r.Turn != nil && r.Turn.UID == p.UID
		if !p.Marked.IsZero() && !p.Leaving && !owned {
			s.act(Unmark, Named{p.Name, p.UID}, time.Time{})
		}
	}
}

// act asks for an act, unless the last of its kind on that pod was just now.
func (s *step) act(kind Kind, pod Named, until time.Time) {
	if last, ok := s.seen.Answers[Key{kind, pod.UID}]; ok && s.now.Sub(last.At) < s.times.Again {
		return
	}
	s.acts = append(s.acts, Act{Kind: kind, Pod: pod, Until: until})
}

func (s *step) pod(uid string) *Pod {
	for i := range s.seen.Pods {
		if s.seen.Pods[i].UID == uid {
			return &s.seen.Pods[i]
		}
	}
	return nil
}

func (s *step) event(pod, kind, format string, args ...any) {
	s.events = append(s.events, Event{pod, kind, fmt.Sprintf(format, args...)})
}

// refused says what a refused eviction means: that it is worth another try, or why not.
func refused(a Answer) (why string, final bool) {
	switch a.Status {
	case http.StatusTooManyRequests:
		return "its PodDisruptionBudget allows no eviction now: " + a.Message, false
	case http.StatusInternalServerError:
		return "the API server refuses its eviction (two PodDisruptionBudgets that select one pod do that): " + a.Message, true
	case http.StatusForbidden:
		return "the account may not evict it: " + a.Message, true
	}
	return fmt.Sprintf("the API server does not evict it (%d): %s", a.Status, a.Message), false
}
