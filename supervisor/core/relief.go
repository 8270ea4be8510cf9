package core

import (
	"fmt"
	"strings"
	"time"

	"roundhouse/configs/workerid"
)

// Relief is the name of the further worker that a surge starts.
const Relief = "relief"

// relieved are the pools with their reliefs among the workers: while a
// rotation runs, and after one that ended early for as long as the pool would
// be below its min_ready without it.
func (s *step) relieved() []Pool {
	out := append([]Pool(nil), s.d.Pools...)
	for i := range out {
		p := &out[i]
		w, there := s.in.Workers[workerid.Of(p.Name, Relief)]
		if p.Relief == nil || !there || w.Then == ThenRemove {
			continue // one that leaves goes first; the next rotation begins another
		}
		if r := s.in.Rotations[p.Name]; r.State != Running && (w.Phase != Ready || s.readyBut(p, Relief) >= p.MinReady) {
			continue
		}
		spec := *p.Relief
		spec.Name, spec.Relief = Relief, true
		p.Workers = append(append([]Spec(nil), p.Workers...), spec)
	}
	return out
}

// readyBut counts the workers of a pool that serve, without the named one.
func (s *step) readyBut(p *Pool, name string) int {
	n := 0
	for _, spec := range p.Workers {
		id := workerid.Of(p.Name, spec.Name)
		w, seen := s.in.Workers[id], s.o.Workers[id]
		if spec.Name != name && w.Phase == Ready && (spec.Static || seen.Process == Alive && !seen.Down && !seen.Hung) {
			n++
		}
	}
	return n
}

// relief sees to the further worker of a surge; true: the next turn may begin,
// with it or because there can be none.
func (s *step) relief(p *Pool, r *Rotation) bool {
	c := s.in.Pools[p.Name]
	if p.Relief == nil || c.Rejected[p.Relief.Hash] && c.Relief == "" {
		if left := len(names(p)) - 1; p.MinReady > left {
			s.halt(p, r, fmt.Sprintf("no further worker can be started first (%s), and min_ready = %d leaves none to take out", p.NoRelief, p.MinReady))
			return false
		}
		return true
	}
	id := workerid.Of(p.Name, Relief)
	w, there := s.in.Workers[id]
	if !there {
		s.sendFor(p, r, id, Worker{Phase: Stopped, Then: ThenStart, Since: s.now, Good: c.Relief})
		return false
	}
	switch {
	case w.Phase == Ready && w.Hash != w.Good: // not yet proven
		return false
	case w.Phase == Ready:
		if strings.HasPrefix(r.Why, id) {
			r.Waiting, r.Why = time.Time{}, ""
		}
		if c.Relief != w.Hash {
			c.Relief = w.Hash
			s.in.Pools[p.Name] = c
		}
		if r.rollout() && p.Canary != nil && r.Since.IsZero() && w.Hash == p.Relief.Hash {
			r.Canary, r.Since = Relief, s.now
			s.event(p.Name, id, "canary", "takes %.0f %% of the requests until %d are judged", p.Canary.Share*100, p.Canary.MinRequests)
			return false
		}
		return true
	case w.Phase == Quarantined, w.Phase == Failed && w.Failures > 0:
		state := Halted
		if r.rollout() {
			state = RolledBack
		}
		s.end(p, r, state, fmt.Sprintf("nothing was drained: %s does not start: %s", id, w.LastError))
		return false
	}
	s.wait(p, r, fmt.Sprintf("%s is %s: %s", id, w.Phase, w.Reason))
	return false
}

// sendFor begins a relief, once it is prepared for.
func (s *step) sendFor(p *Pool, r *Rotation, id string, w Worker) {
	if why := s.closed(p, r); why != "" {
		s.wait(p, r, why)
		return
	}
	spec := *p.Relief
	spec.Name, spec.Relief = Relief, true
	if !s.prepared(p, r, &spec, w) {
		return
	}
	w.Hash = s.wantedHash(p.Name, &spec, &w)
	w.Reason = fmt.Sprintf("rotation %d: it stands in for the others", r.ID)
	s.in.Workers[id] = w
	r.Waiting, r.Why = s.now, id+" is being started"
	s.event(p.Name, id, "relief", "is started before any other is taken out; rotation %d", r.ID)
}
