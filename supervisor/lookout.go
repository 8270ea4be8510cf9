package supervisor

import (
	"context"
	"fmt"
	"io"
	"sort"
	"strconv"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs/workerid"
	"roundhouse/live"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/journal"
)

// lookout shows a supervisor to those who look on: it is a live.Source.
type lookout struct{ s *Supervisor }

// silentAfter is how long a door may leave questions unanswered before it is told as
// silent: one that is being replaced does for a moment.
const silentAfter = 2 * time.Second

// Look implements live.Source.
func (l lookout) Look(ctx context.Context) (live.Now, error) {
	seen := make(chan live.Now, 1) // the loop may come to it when nobody waits any more
	if err := l.s.ask(ctx, func() { seen <- l.look() }); err != nil {
		return live.Now{}, err
	}
	return <-seen, nil
}

// look runs in the loop.
func (l lookout) look() live.Now {
	s := l.s
	pools := s.pools()
	now := live.Now{
		Door: pools.Door, Supervisor: pools.Supervisor, Pools: pools.Pools, Workers: s.workers().Workers,
		Rotations: s.rotationList(), Schedules: s.scheduleList(), Canaries: pools.Canaries,
	}
	switch {
	case s.memory.failed != nil:
		now.Journal = s.memory.failed.Error()
	case s.memory.disk.full:
		now.Journal = "the disk is full"
	}
	for _, d := range s.gate.doors {
		now.Doors = append(now.Doors, l.door(d))
		if d.state != nil {
			now.Counts = append(now.Counts, countsOf(d.state))
		}
	}
	if len(now.Doors) == 0 {
		why := "it has ended, and is started again"
		now.Doors = []live.OneDoor{{ID: "door", State: "silent", Error: &why}}
	}
	sort.Slice(now.Doors, func(i, j int) bool { return now.Doors[i].ID < now.Doors[j].ID })
	return now
}

// door is one door as it is shown.
func (l lookout) door(d *door) live.OneDoor {
	now := l.s.clock.Now()
	v := live.OneDoor{ID: d.id, State: "starting"}
	if d.state != nil {
		v.State, v.Version = string(d.state.Phase), control.Known(d.state.Build)
		v.Streams, v.Queued = &d.state.Streams, &d.state.Queued
		age := now.Sub(d.heard).Seconds()
		v.ReportAge = &age
	}
	if !d.silent.IsZero() && now.Sub(d.silent) > silentAfter && !d.leaving {
		v.State, v.Error = "silent", control.Known(d.lastErr)
	}
	return v
}

// countsOf is what a door has counted.
func countsOf(st *control.State) live.Counts {
	c := live.Counts{Door: st.Door + "/" + strconv.Itoa(st.PID), Pools: st.Pools}
	for i := range st.Workers {
		w := &st.Workers[i]
		c.Workers = append(c.Workers, live.WorkerCount{ID: w.ID, Generation: w.Generation, Failed: w.Failed, Tokens: w.Tokens})
	}
	return c
}

// InFlight implements live.Source.
func (l lookout) InFlight(ctx context.Context) []control.InFlight {
	var all []control.InFlight
	for _, list := range answersOfDoors[[]control.InFlight](ctx, l.s, "/requests") {
		all = append(all, list...)
	}
	return all
}

func shownEvent(e journal.Event) live.Event {
	return live.Event{ID: e.ID, At: e.At, Pool: e.Pool, Worker: e.Worker, Kind: e.Kind, Who: e.Who, Text: e.Text}
}

// Events implements live.Source.
func (l lookout) Events(after uint64, limit int) ([]live.Event, error) {
	old, err := l.s.memory.journal.Events(after, limit)
	out := make([]live.Event, len(old))
	for i, e := range old {
		out[i] = shownEvent(e)
	}
	return out, err
}

// Follow implements live.Source.
func (l lookout) Follow(ctx context.Context) (<-chan live.Event, func()) {
	incoming, out := make(chan journal.Event, 256), make(chan live.Event)
	ctx, stop := context.WithCancel(ctx)
	l.s.group.Go(func() {
		if l.s.ask(ctx, func() { l.s.events.watchers[incoming] = true }) != nil {
			return
		}
		for {
			select {
			case e := <-incoming:
				select {
				case out <- shownEvent(e):
				case <-ctx.Done():
				}
			case <-ctx.Done():
				l.s.tell(func() { delete(l.s.events.watchers, incoming) })
				return
			}
		}
	})
	return out, stop
}

// Log implements live.Source.
func (l lookout) Log(ctx context.Context, of string, tail int) (io.ReadCloser, error) {
	o := driver.LogOptions{Tail: tail, Follow: true}
	if of == "door" {
		return l.s.children.OpenLog(ctx, "door", o)
	}
	pool, name := workerid.Split(of)
	var by *runner
	if err := l.s.ask(ctx, func() { by = l.s.runnerOf(workerid.Of(pool, name)) }); err != nil {
		return nil, err
	}
	if by == nil {
		return nil, fmt.Errorf("worker %q is run by nobody here, or not configured", of)
	}
	return by.driver.Logs(ctx, of, o)
}
