package balancer

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"

	"roundhouse/balancer/control"
	"roundhouse/live"
)

// lookout shows a door that runs alone to those who look on: it is a live.Source. Such a
// door has no events, and starts nothing whose log it could read.
type lookout struct {
	d         *Door
	rotations Rotations // nil: nothing here rotates workers
}

// Look implements live.Source.
func (l lookout) Look(context.Context) (live.Now, error) {
	pools, st := l.d.poolsShown(l.rotations), l.d.State()
	age := 0.0
	now := live.Now{
		Door: pools.Door, Pools: pools.Pools, Workers: l.d.workersShown().Workers, Rotations: []live.Rotation{}, Schedules: []live.Schedule{},
		Doors:  []live.OneDoor{{ID: l.d.id, State: string(st.Phase), Version: control.Known(st.Build), Streams: &st.Streams, Queued: &st.Queued, ReportAge: &age}},
		Counts: []live.Counts{{Door: st.Door + "/" + strconv.Itoa(os.Getpid()), Pools: st.Pools}},
	}
	if l.rotations != nil {
		now.Rotations, now.Schedules = l.rotations.List()
	}
	for i := range st.Workers {
		w := &st.Workers[i]
		now.Counts[0].Workers = append(now.Counts[0].Workers, live.WorkerCount{ID: w.ID, Generation: w.Generation, Failed: w.Failed, Tokens: w.Tokens})
	}
	return now, nil
}

// InFlight implements live.Source.
func (l lookout) InFlight(context.Context) []control.InFlight { return l.d.Requests() }

// Events implements live.Source.
func (l lookout) Events(uint64, int) ([]live.Event, error) { return nil, nil }

// Follow implements live.Source.
func (l lookout) Follow(context.Context) (<-chan live.Event, func()) { return nil, func() {} }

// Log implements live.Source.
func (l lookout) Log(context.Context, string, int) (io.ReadCloser, error) {
	return nil, errors.New("a door that runs alone keeps no logs of workers, and writes its own to where it was started")
}
