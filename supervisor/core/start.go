package core

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"roundhouse/configs/workerid"
)

// How long a start may hold the place of another one.
const (
	// fetchTime is how long a driver may take to make a process before it counts as
	// fetching its image or model, which takes no room for a model.
	fetchTime = 10 * time.Second
	// slowStart is the time that a start may take beyond twice the last start's
	// before it counts as stuck.
	slowStart = 30 * time.Second
)

// underway counts the starts and turns under way on this machine. Turns wait for
// each other by it.
func (s *step) underway() int {
	n := 0
	for _, w := range s.in.Workers {
		switch {
		case w.Phase == Starting, w.Phase == Warming:
			n++
		case (w.Phase == Draining || w.Phase == Drained) && w.Then == ThenStart:
			n++
		}
	}
	return n
}

// loading counts the workers that are loading a model now. A drain loads nothing,
// nor does a driver that fetches an image. Before a worker that has served already,
// only others of that kind count, as long as they start as they did before: a
// worker's first start, a failed start and a stuck start keep no pool from
// getting its workers back.
func (s *step) loading(before Worker) int {
	n := 0
	for _, w := range s.in.Workers {
		switch {
		case w.Phase != Starting && w.Phase != Warming:
		case w.Launched.IsZero() && s.now.Sub(w.Since) > fetchTime:
		case before.Good != "" && (w.Good == "" || w.Failures > 0 || s.stuck(w)):
		default:
			n++
		}
	}
	return n
}

// stuck reports whether a start takes much longer than the worker's last one.
func (s *step) stuck(w Worker) bool {
	return w.Took > 0 && !w.Launched.IsZero() && s.now.Sub(w.Launched) > 2*w.Took+slowStart
}

// waiting is a worker that waits for its start.
type waiting struct {
	pool *Pool
	spec *Spec
	id   string
}

// begin starts the workers that wait for a start: first those that have served before, the
// least often failed ahead, as many as may start at once.
func (s *step) begin() {
	list := s.waiting()
	sort.SliceStable(list, func(a, b int) bool {
		wa, wb := s.in.Workers[list[a].id], s.in.Workers[list[b].id]
		if (wa.Good != "") != (wb.Good != "") {
			return wa.Good != ""
		}
		return wa.Failures+wa.Crashes < wb.Failures+wb.Crashes
	})
	for _, x := range list {
		w := s.in.Workers[x.id]
		if x.spec.Lacks != "" {
			s.unplaced(x.id, &w, x.pool, x.spec)
		} else if s.fetched(x, &w) && s.loading(w) < max(1, s.d.Parallel) {
			s.start(x.id, &w, x.pool, x.spec)
		}
		s.in.Workers[x.id] = w
	}
}

// waiting lists the workers whose start is due.
func (s *step) waiting() []waiting {
	var list []waiting
	for i := range s.d.Pools {
		for j := range s.d.Pools[i].Workers {
			p, spec := &s.d.Pools[i], &s.d.Pools[i].Workers[j]
			id := workerid.Of(p.Name, spec.Name)
			w, seen := s.in.Workers[id], s.o.Workers[id]
			fresh := w.Phase == Stopped && w.Then == ThenStart && !s.now.Before(w.NextTry)
			again := w.Phase == Failed && !s.now.Before(w.NextTry)
			if (fresh || again) && !spec.Static && !seen.Busy && (seen.Process == Absent || seen.Process == Exited) {
				list = append(list, waiting{p, spec, id})
			}
		}
	}
	return list
}

// unplaced has a worker wait for a place on the machine. It holds nobody up.
func (s *step) unplaced(id string, w *Worker, p *Pool, spec *Spec) {
	if w.Phase == Failed && w.LastError == spec.Lacks {
		return
	}
	w.LastError, w.Then, w.NextTry = spec.Lacks, "", time.Time{}
	s.to(w, Failed, "has no place: "+spec.Lacks)
	s.event(p.Name, id, "unplaced", "%s; it starts once there is one", spec.Lacks)
}

// StartKey names the preparation for a worker's start: of one wait, for one
// configuration.
func StartKey(id string, w Worker, hash string) string {
	return fmt.Sprint("start ", id, " ", w.Since.UnixNano(), " ", hash)
}

// fetched reports whether a worker can be started at once, and asks for its
// missing parts. The parts of settings that ran well before are there.
func (s *step) fetched(x waiting, w *Worker) bool {
	hash := s.startsWith(x.pool, x.spec, w)
	if s.o.Prepared == nil || hash == w.Good || s.isPrepared(hash) {
		return true
	}
	key := StartKey(x.id, *w, hash)
	why, known := s.o.Prepared[key]
	switch {
	case !known:
		s.actions = append(s.actions, Action{Kind: Prepare, Worker: x.id, Generation: w.Generation, Hash: hash, Key: key})
		return false
	case why != "":
		w.Hash = hash
		s.failed(x.id, w, x.pool, x.spec, why)
		return false
	}
	return true
}

// isPrepared reports whether a rotation that runs has prepared for a configuration.
func (s *step) isPrepared(hash string) bool {
	for _, r := range s.in.Rotations {
		if why, known := s.o.Prepared[PreparedKey(r.ID, hash)]; known && why == "" && r.State == Running {
			return true
		}
	}
	return false
}

// start begins a new generation of a worker. Its time limit begins with its process.
func (s *step) start(id string, w *Worker, p *Pool, spec *Spec) {
	if w.Generation > 0 {
		w.Restarts++
	}
	w.Generation = max(w.Generation, s.o.Workers[id].Generation) + 1
	w.Hash = s.startsWith(p, spec, w)
	if w.Good != "" && w.Good == spec.Plain && w.Hash == spec.Hash {
		w.Good = w.Hash
	}
	w.Then, w.NextTry, w.Started, w.Forced = "", time.Time{}, time.Time{}, false
	w.Deadline, w.Launched = time.Time{}, time.Time{}
	w.BaseMemory, w.BaseSpeed = 0, 0
	s.to(w, Starting, w.Reason)
	s.act(Start, id, *w, 0)
	s.event(p.Name, id, "started", "generation %d: %s", w.Generation, w.Reason)
}

// startsWith is the hash of the settings that a worker is started with now: the wanted
// settings, unless a roll-out has not come to it. A worker that crashes meanwhile comes
// back as it was.
func (s *step) startsWith(p *Pool, spec *Spec, w *Worker) string {
	if r := s.in.Rotations[p.Name]; r.State == Running && r.rollout() && w.Good != "" && slices.Contains(r.Queue, spec.Name) {
		return w.Good
	}
	return s.wantedHash(p.Name, spec, w)
}

// wantedHash is the hash of the settings that a worker should have: the configured
// settings, or the last that it ran well with if those were refused or have no place.
func (s *step) wantedHash(pool string, spec *Spec, w *Worker) string {
	if spec.Lacks != "" && w.Hash != "" {
		return w.Hash
	}
	if w.Good != "" && s.in.Pools[pool].Rejected[spec.Hash] {
		return w.Good
	}
	return spec.Hash
}
