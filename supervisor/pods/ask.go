package pods

import (
	"slices"
	"time"

	"roundhouse/configs/workerid"
	"roundhouse/supervisor/core"
)

// Rotate begins a rotation of the named pods, or of all where names is empty.
func Rotate(in State, seen []Pod, names []string, now time.Time) (State, error) {
	if r := in.Rotation; r != nil && r.State == Running {
		return in, core.Conflictf("rotation %d is running (%s)", r.ID, r.Cause)
	}
	s := &step{now: now, seen: Seen{Pods: seen}}
	queue := s.names()
	if len(names) > 0 {
		queue = slices.DeleteFunc(queue, func(n Named) bool { return !slices.Contains(names, n.Name) })
	}
	if len(queue) == 0 {
		return in, core.Conflictf("there is no pod to replace")
	}
	s.rotate(&in, "operator", queue)
	return in, nil
}

// Continue goes on with a halted rotation.
func Continue(in State) (State, error) {
	r := in.Rotation.clone()
	if r == nil || r.State != Halted {
		return in, core.Conflictf("no rotation is halted")
	}
	r.State, r.Reason, r.Ended = Running, "", time.Time{}
	in.Rotation = r
	return in, nil
}

// Abort ends a running or halted rotation. A pod that is evicted already is replaced all
// the same.
func Abort(in State, by string, now time.Time) (State, error) {
	r := in.Rotation.clone()
	if r == nil || r.State == Done || r.State == Halted && len(r.Queue) == 0 {
		return in, core.Conflictf("no rotation is running or halted")
	}
	s := &step{now: now}
	s.end(r, Halted, "aborted by "+by)
	r.Queue = nil
	in.Rotation = r
	return in, nil
}

// Preview is what a turn of each pod would meet now.
func Preview(p *Pool, seen []Pod, now time.Time) []core.Turn {
	all := []core.Turn{}
	s := &step{pool: p, now: now, seen: Seen{Pods: seen}}
	for _, n := range s.names() {
		all = append(all, core.Turn{Worker: workerid.Of(p.Name, n.Name), Obstacle: s.obstacle(n)})
	}
	return all
}
