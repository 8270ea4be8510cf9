package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"roundhouse/configs/workerid"
	"roundhouse/supervisor/schedule"
)

// rotation takes a pool's rotation a step further, or begins one.
func (s *step) rotation(p *Pool) {
	r, ok := s.in.Rotations[p.Name]
	if !ok || r.State != Running {
		s.schedule(p, false)
		s.triggers(p)
		return
	}
	s.schedule(p, true)
	if r.Current != "" {
		s.turn(p, &r)
	}
	if r.State == Running && r.Current == "" && r.Canary != "" {
		s.judge(p, &r)
	}
	if r.State == Running && r.Current == "" && r.Canary == "" {
		s.nextTurn(p, &r)
	}
	s.in.Rotations[p.Name] = r
}

// schedule begins a rotation when the pool's plan says so.
func (s *step) schedule(p *Pool, running bool) {
	if p.Plan == nil {
		return
	}
	c := s.in.Pools[p.Name]
	if c.Off && !c.OffUntil.IsZero() && !s.o.Wall.Before(c.OffUntil) {
		c.Off, c.OffUntil = false, time.Time{}
		s.event(p.Name, "", "schedule", "is on again")
	}
	v := p.Plan.DueWith(c.LastRun, s.o.Wall, p.quiet(&c))
	// A time that only says that nothing was due is not worth a write.
	if v.Run || v.Missed > 0 || c.LastRun.IsZero() || v.Last.Before(c.LastRun) || v.Last.Sub(c.LastRun) > time.Hour {
		c.LastRun = v.Last
	}
	s.in.Pools[p.Name] = c
	if v.Missed > 0 {
		s.event(p.Name, "", "missed", "%d scheduled rotations were missed", v.Missed)
	}
	switch {
	case !v.Run:
	case c.Off:
		s.event(p.Name, "", "missed", "the schedule is off")
	case running:
		s.event(p.Name, "", "missed", "rotation %d is still running", s.in.Rotations[p.Name].ID)
	case s.o.DiskFull:
		s.event(p.Name, "", "missed", "the journal cannot be written")
	default:
		cause := "schedule"
		if v.Late {
			cause = "schedule (late)"
		}
		s.rotate(p, cause, names(p))
	}
}

// ByGap reports whether a turn leaves the pool with nobody: such turns are worth a
// quiet moment, and files that are read before.
func (p *Pool) ByGap() bool {
	return p.Relief == nil && (len(p.Workers) == 1 || p.MinReady == 0)
}

// quiet has the scheduled turns of a pool that turns by gap come at the
// quietest moment within the jitter, chosen once for each. Nil: by chance.
func (p *Pool) quiet(c *PoolRecord) func(time.Time) time.Duration {
	if !p.ByGap() || p.Plan.Jitter() <= 0 {
		return nil
	}
	return func(run time.Time) time.Duration {
		if !c.Run.Equal(run) {
			c.Run, c.Moment = run, c.Traffic.Quietest(run, p.Plan.Jitter(), schedule.Bin, p.Plan.Zone())
		}
		return c.Moment.Sub(run)
	}
}

func names(p *Pool) []string {
	out := make([]string, 0, len(p.Workers))
	for _, spec := range p.Workers {
		if !spec.Static && !spec.Relief {
			out = append(out, spec.Name)
		}
	}
	return out
}

// rotate begins a rotation of the named workers.
func (s *step) rotate(p *Pool, cause string, queue []string) {
	if len(queue) == 0 {
		return
	}
	s.in.Counter++
	s.in.Rotations[p.Name] = Rotation{ID: s.in.Counter, Pool: p.Name, Cause: cause, State: Running, Queue: queue, Began: s.now}
	s.event(p.Name, "", "rotation", "%d begins: %s", s.in.Counter, cause)
	if p.Surge && p.Relief == nil {
		s.event(p.Name, "", "surge", "no further worker can be started first: %s; each is taken out before its successor starts", p.NoRelief)
	}
}

// turn follows the worker whose turn it is.
func (s *step) turn(p *Pool, r *Rotation) {
	id := workerid.Of(p.Name, r.Current)
	w, ok := s.in.Workers[id]
	if ok && s.o.Workers[id].Process == Unknown {
		s.wait(p, r, id+awayWhy)
		return
	}
	if strings.HasSuffix(r.Why, awayWhy) {
		r.Why = "" // it goes on; Waiting stays, so that a driver that comes and goes is not waited for again and again
	}
	switch {
	case !ok || w.Then == ThenRemove:
		r.Current = "" // taken out of the configuration
	case (w.Phase == Draining || w.Phase == Drained) && w.Then == ThenStart:
	case w.Phase == Stopped && w.Then == ThenStart, w.Phase == Starting, w.Phase == Warming:
	case w.Phase == Ready && w.Generation > r.From && w.Hash != w.Good: // not yet proven
	case w.Phase == Ready && w.Generation > r.From && r.Back:
		s.end(p, r, RolledBack, r.Reason)
	case w.Phase == Ready && w.Generation > r.From:
		turned := r.Current
		r.Done, r.Current, r.Waiting = append(r.Done, turned), "", time.Time{}
		if r.rollout() && p.Canary != nil && len(r.Queue) > 0 && r.Since.IsZero() {
			r.Canary, r.Since = turned, s.now
			s.event(p.Name, id, "canary", "takes %.0f %% of the requests until %d are judged", p.Canary.Share*100, p.Canary.MinRequests)
		}
	case w.Phase == Failed && w.Good != "" && w.Hash != w.Good && s.in.Pools[p.Name].Rejected[w.Hash]:
		r.Back, r.Reason = true, id+" "+w.LastError
	case w.Phase == Failed && r.Back:
		s.halt(p, r, fmt.Sprintf("%s fails with what it ran before as well: %s", id, w.LastError))
	case w.Phase == Ready:
		s.halt(p, r, id+" was undrained by an operator")
	default:
		s.halt(p, r, fmt.Sprintf("%s is %s: %s", id, w.Phase, w.Reason))
	}
}

// halt ends a rotation in the middle; what had no turn yet stays in its queue
// for --continue.
func (s *step) halt(p *Pool, r *Rotation, why string) {
	if r.Current != "" {
		r.Queue = append([]string{r.Current}, r.Queue...)
	}
	s.end(p, r, Halted, why)
}

// end ends a rotation. A roll-out that did not get through is not tried again
// by itself.
func (s *step) end(p *Pool, r *Rotation, state RotationState, why string) {
	r.State, r.Reason, r.Ended, r.Current, r.Canary, r.Why, r.Waiting = state, why, s.now, "", "", "", time.Time{}
	if state != Done && r.rollout() {
		for _, spec := range p.Workers {
			w := s.in.Workers[workerid.Of(p.Name, spec.Name)]
			if slices.Contains(r.Queue, spec.Name) && w.Hash != spec.Hash {
				s.reject(p, spec.Hash)
			}
		}
		if p.Relief != nil {
			s.reject(p, p.Relief.Hash)
		}
	}
	if why == "" {
		why = fmt.Sprintf("%d workers", len(r.Done))
	}
	s.event(p.Name, "", "rotation", "%d is %s: %s", r.ID, state, why)
}

// nextTurn takes the next worker out, if that harms nobody.
func (s *step) nextTurn(p *Pool, r *Rotation) {
	for len(r.Queue) > 0 && !s.canTurn(p, r.Queue[0]) {
		r.Queue = r.Queue[1:]
	}
	if len(r.Queue) == 0 {
		s.end(p, r, Done, "")
		return
	}
	r.Rollout = r.Rollout || s.changes(p, r.Queue)
	if p.Surge && !s.relief(p, r) {
		return
	}
	name := r.Queue[0]
	id := workerid.Of(p.Name, name)
	if why := s.obstacle(p, r, name); why != "" {
		s.wait(p, r, why)
		return
	}
	w := s.in.Workers[id]
	i := slices.IndexFunc(p.Workers, func(x Spec) bool { return x.Name == name })
	if !s.prepared(p, r, &p.Workers[i], w) {
		return
	}
	r.Queue, r.Current, r.Waiting, r.Why = r.Queue[1:], name, time.Time{}, ""
	r.From = w.Generation
	w.Then, w.Deadline = ThenStart, s.now.Add(p.Drain)
	s.to(&w, Draining, "rotation: "+r.Cause)
	s.in.Workers[id] = w
	s.event(p.Name, id, "turn", "drains until %s; rotation %d", w.Deadline.UTC().Format(time.RFC3339), r.ID)
}

// rollout reports whether a rotation brings another configuration: it was begun for
// that, or an image's name was found to have moved when it was prepared for.
func (r *Rotation) rollout() bool { return r.Rollout || r.Cause == Configuration }

// changes reports whether some of the named workers would come back as another than
// they are.
func (s *step) changes(p *Pool, names []string) bool {
	return slices.ContainsFunc(p.Workers, func(spec Spec) bool {
		w := s.in.Workers[workerid.Of(p.Name, spec.Name)]
		return slices.Contains(names, spec.Name) && w.Phase == Ready && s.changed(p, &spec, &w)
	})
}

// changed reports whether a worker runs with another configuration than it is to have.
func (s *step) changed(p *Pool, spec *Spec, w *Worker) bool {
	return s.wantedHash(p.Name, spec, w) != w.Hash && w.Hash != spec.Plain
}

// wait notes why the next turn cannot begin, and gives up after a while.
func (s *step) wait(p *Pool, r *Rotation, why string) {
	if r.Waiting.IsZero() {
		r.Waiting = s.now
	}
	if strings.HasSuffix(why, awayWhy) && r.Why != why {
		if s.now.Sub(r.Waiting) < time.Second {
			return // a supervisor that has just begun has not asked it yet
		}
		s.event(p.Name, "", "waits", "rotation %d: %s; it goes on by itself once it does, and halts at %s", r.ID, why, r.Waiting.Add(p.Drain+p.Ready).UTC().Format(time.RFC3339))
	}
	r.Why = why
	// A blackout ends by itself, and no other wait is worth more than a
	// turn's own two time limits.
	if why != blackout && s.now.Sub(r.Waiting) > p.Drain+p.Ready {
		s.halt(p, r, "waited too long: "+why)
	}
}

// PreparedKey names one preparation: of a rotation, for one configuration.
func PreparedKey(rotation uint64, hash string) string { return fmt.Sprint(rotation, " ", hash) }

// prepared reports whether a worker's next start is prepared for, and asks for
// it. What cannot be prepared halts the rotation while everything still runs.
func (s *step) prepared(p *Pool, r *Rotation, spec *Spec, w Worker) bool {
	if s.o.Prepared == nil {
		return true
	}
	name := spec.Name
	w.Hash = s.wantedHash(p.Name, spec, &w)
	key := PreparedKey(r.ID, w.Hash)
	why, known := s.o.Prepared[key]
	switch {
	case !known:
		s.actions = append(s.actions, Action{Kind: Prepare, Worker: workerid.Of(p.Name, name), Generation: w.Generation, Hash: w.Hash, Key: key})
		return false
	case why != "":
		s.halt(p, r, fmt.Sprintf("nothing was drained: %s could not be started: %s", workerid.Of(p.Name, name), why))
		return false
	}
	return true
}

// canTurn reports whether a worker is there to be turned. What is stopped, held,
// in quarantine or being started anyway needs no turn.
func (s *step) canTurn(p *Pool, name string) bool {
	for i := range p.Workers {
		if p.Workers[i].Name != name {
			continue
		}
		w, ok := s.in.Workers[workerid.Of(p.Name, name)]
		switch {
		case !ok, p.Workers[i].Static, p.Workers[i].Lacks != "", w.Phase == Quarantined:
			return false
		case w.Phase == Stopped, w.Phase == Draining, w.Phase == Drained:
			return w.Then == ThenStart
		}
		return true
	}
	return false
}

const blackout = "a blackout window is open"

// awayWhy ends what a rotation that waits for a driver says of the worker.
const awayWhy = ": its driver does not answer"

// closed says why nothing of a rotation may begin now; empty: it may.
func (s *step) closed(p *Pool, r *Rotation) string {
	if p.Plan.Blocked(s.o.Wall) && r.Cause != Operator {
		return blackout
	}
	if s.o.DiskFull {
		return "the journal cannot be written"
	}
	if !s.obeyed() {
		return "the doors do not obey this supervisor"
	}
	return ""
}

// obstacle says why the named worker cannot be taken out now; empty: it can.
func (s *step) obstacle(p *Pool, r *Rotation, name string) string {
	if why := s.closed(p, r); why != "" {
		return why
	}
	if w := s.in.Workers[workerid.Of(p.Name, name)]; w.Phase != Ready {
		return fmt.Sprintf("%s is %s: %s", workerid.Of(p.Name, name), w.Phase, w.Reason)
	}
	switch seen := s.o.Workers[workerid.Of(p.Name, name)]; {
	case seen.Process == Unknown:
		return workerid.Of(p.Name, name) + awayWhy
	case seen.Process != Alive:
		return workerid.Of(p.Name, name) + " has just ended"
	case seen.Busy:
		return workerid.Of(p.Name, name) + ": what is done on it has not ended"
	}
	ready, room, known := 0, int64(0), true
	if s.preview && p.Relief != nil {
		ready, known = 1, false // by then the relief is there
	}
	for _, spec := range p.Workers {
		id := workerid.Of(p.Name, spec.Name)
		w, seen := s.in.Workers[id], s.o.Workers[id]
		if spec.Name == name {
			continue
		}
		switch {
		case w.Phase == Ready && seen.Process == Alive && !seen.Down && !seen.Hung, w.Phase == Ready && spec.Static:
			ready++
			room += max(0, seen.Free)
			known = known && seen.Free >= 0
		case w.Phase == Quarantined, w.Phase == Failed && spec.Lacks != "", w.Phase == Stopped && w.Then != ThenStart, w.Then == ThenHold:
		case seen.Process == Unknown && !spec.Static:
			return id + awayWhy
		default:
			return fmt.Sprintf("%s is %s: %s", id, w.Phase, w.Reason)
		}
	}
	if ready < p.MinReady {
		return fmt.Sprintf("%d other workers are ready, min_ready asks for %d", ready, p.MinReady)
	}
	if load := s.o.Workers[workerid.Of(p.Name, name)].Charged; ready > 0 && known && load > room {
		return fmt.Sprintf("the others have room for %d tokens, and it holds %d", room, load)
	}
	if s.underway() >= max(1, s.d.Parallel) {
		return "another start or turn is under way on this machine"
	}
	return ""
}
