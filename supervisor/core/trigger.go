package core

import (
	"fmt"
	"time"

	"roundhouse/configs/workerid"
)

// The causes of a rotation that the rules depend on.
const (
	Configuration = "configuration"
	Operator      = "operator"
)

// firstHour is the time with which a worker's memory and speed are compared.
const firstHour = time.Hour

// triggers begins a rotation for a reason other than the clock.
func (s *step) triggers(p *Pool) {
	var changed []string
	for i := range p.Workers {
		spec := &p.Workers[i]
		id := workerid.Of(p.Name, spec.Name)
		w, seen := s.in.Workers[id], s.o.Workers[id]
		if w.Phase != Ready || spec.Static || spec.Relief || seen.Process != Alive || seen.Generation != w.Generation {
			continue
		}
		s.baseline(&w, seen)
		s.in.Workers[id] = w
		if s.changed(p, spec, &w) {
			changed = append(changed, spec.Name)
			continue
		}
		if cause := sinking(p, w, seen); cause != "" && !s.o.DiskFull && !p.Plan.Blocked(s.o.Wall) && s.rested(p) {
			s.rotate(p, cause, []string{spec.Name})
			return
		}
	}
	if len(changed) > 0 && !s.o.DiskFull && !p.Plan.Blocked(s.o.Wall) {
		s.rotate(p, Configuration, changed)
	}
}

// rested keeps a cause that lasts from beginning rotation after rotation that
// cannot go on.
func (s *step) rested(p *Pool) bool {
	r, ok := s.in.Rotations[p.Name]
	return !ok || r.State == Done || s.now.Sub(r.Ended) > firstHour
}

// baseline notes the figures of a worker's first hour.
func (s *step) baseline(w *Worker, seen Seen) {
	if s.now.Sub(w.Started) < firstHour {
		return
	}
	if w.BaseMemory == 0 {
		w.BaseMemory = seen.Memory
	}
	if w.BaseSpeed == 0 {
		w.BaseSpeed = seen.Speed
	}
}

// sinking says why a ready worker should turn early; empty: it need not.
func sinking(p *Pool, w Worker, seen Seen) string {
	switch {
	case p.AfterRequests > 0 && seen.Served >= p.AfterRequests:
		return fmt.Sprintf("requests: %d served, after_requests is %d", seen.Served, p.AfterRequests)
	case p.AfterTokens > 0 && seen.Tokens >= p.AfterTokens:
		return fmt.Sprintf("tokens: %d served, after_tokens is %d", seen.Tokens, p.AfterTokens)
	case p.MemoryGrowth > 0 && w.BaseMemory > 0 && float64(seen.Memory) > float64(w.BaseMemory)*(1+p.MemoryGrowth):
		return fmt.Sprintf("memory: %d MiB, %d MiB after its first hour", seen.Memory>>20, w.BaseMemory>>20)
	case p.Slowdown > 0 && w.BaseSpeed > 0 && seen.Speed > 0 && seen.Speed < w.BaseSpeed*(1-p.Slowdown):
		return fmt.Sprintf("slowdown: %.1f tokens/s, %.1f after its first hour", seen.Speed, w.BaseSpeed)
	}
	return ""
}

// judge holds a roll-out's first worker against the others.
func (s *step) judge(p *Pool, r *Rotation) {
	id := workerid.Of(p.Name, r.Canary)
	w, seen := s.in.Workers[id], s.o.Workers[id]
	if p.Canary != nil && (seen.Process == Unknown || w.Interrupted) {
		r.Again = 0 // it is judged anew once it is back
		return
	}
	if p.Canary == nil || w.Phase != Ready {
		if p.Canary == nil {
			r.Canary = ""
			return
		}
		s.end(p, r, Halted, fmt.Sprintf("the first worker of the roll-out, %s, is %s: %s", id, w.Phase, w.Reason))
		return
	}
	requests := seen.Served + seen.Failed
	if requests < max(p.Canary.MinRequests, r.Again) {
		return
	}
	why, certain := s.worse(p, r.Canary)
	if why != "" && !certain && r.Again == 0 {
		// An average may be off for a moment; if it stays off, it is worse.
		r.Again = requests + max(1, p.Canary.MinRequests/2)
		return
	}
	if why == "" {
		s.event(p.Name, id, "canary", "is no worse than the others after %d requests; the roll-out goes on", seen.Served)
		r.Canary = ""
		return
	}
	s.event(p.Name, id, "canary", "is worse than the others: %s", why)
	s.reject(p, w.Hash)
	if r.Canary == Relief { // nothing else runs the new configuration yet
		c := s.in.Pools[p.Name]
		c.Relief = w.Former
		s.in.Pools[p.Name] = c
		s.end(p, r, RolledBack, id+" "+why)
		return
	}
	r.Reason, r.Back, r.From, r.Current, r.Canary = why, true, w.Generation, r.Canary, ""
	w.Then, w.Deadline = ThenStart, s.now.Add(p.Drain)
	if w.Former != "" {
		w.Good, w.Former = w.Former, ""
	}
	s.to(&w, Draining, "roll-back: "+why)
	s.in.Workers[id] = w
}

// worse names the figure in which a worker is worse than the rest of its pool;
// empty: its samples show none. Counted figures are certain, moving averages
// are not.
func (s *step) worse(p *Pool, name string) (why string, certain bool) {
	c := s.o.Workers[workerid.Of(p.Name, name)]
	var served, failed int64
	var ttft, speed float64
	n := 0
	for _, spec := range p.Workers {
		seen := s.o.Workers[workerid.Of(p.Name, spec.Name)]
		if spec.Name == name || seen.Served == 0 {
			continue
		}
		served, failed = served+seen.Served, failed+seen.Failed
		ttft, speed, n = ttft+seen.TTFT, speed+seen.Speed, n+1
	}
	mine := float64(c.Failed) / float64(max(1, c.Served+c.Failed))
	theirs := float64(failed) / float64(max(1, served+failed))
	switch {
	case mine > theirs*1.5+0.01:
		return fmt.Sprintf("%.1f %% of its requests failed, %.1f %% of the others'", mine*100, theirs*100), true
	case n > 0 && c.TTFT > ttft/float64(n)*1.5+0.05:
		return fmt.Sprintf("%.2f s to the first token, %.2f s at the others", c.TTFT, ttft/float64(n)), false
	case n > 0 && c.Speed > 0 && c.Speed < speed/float64(n)*0.7:
		return fmt.Sprintf("%.1f tokens/s, %.1f at the others", c.Speed, speed/float64(n)), false
	}
	return "", true
}
