package pods

import (
	"context"
	"errors"
	"fmt"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/kube"
	"roundhouse/live"
	"roundhouse/supervisor/core"
)

// Command changes the State, whichever door holds the Lease: it is written there, and the
// holder goes on from it.
func (r *Rotator) Command(ctx context.Context, change func(State, []Pod) (State, error)) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	r.acting.Lock()
	defer r.acting.Unlock()
	for {
		record, err := r.lease.Read(ctx)
		if err != nil {
			return State{}, err
		}
		if err := r.note(record, time.Now()); err != nil {
			return State{}, err
		}
		pods, state := r.seen()
		if pods == nil {
			return State{}, core.Conflictf("the pods of pool %q are not in view", r.o.Pool.Name)
		}
		next, err := change(state, pods)
		if err != nil {
			return State{}, err
		}
		if record, err = noted(record, next); err != nil {
			return State{}, err
		}
		written, err := r.lease.Write(ctx, record, lasts)
		if errors.Is(err, kube.ErrWritten) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return State{}, fmt.Errorf("the Lease %s/%s: %w", r.o.Namespace, r.lease.Name, err)
		}
		return next, r.note(written, time.Now())
	}
}

// Preview is what a rotation of all pods would meet now.
func (r *Rotator) Preview() []core.Turn {
	pods, _ := r.seen()
	return Preview(&r.o.Pool, pods, time.Now())
}

// Rotation is the pool's last rotation as the admin API shows it; nil: there was none.
func (r *Rotator) Rotation() *live.Rotation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Shown(r.o.Pool.Name, r.state)
}

// Shown is a State's rotation as the admin API shows it; nil: there was none.
func Shown(pool string, s State) *live.Rotation {
	x := s.Rotation
	if x == nil {
		return nil
	}
	v := &live.Rotation{ID: x.ID, Pool: pool, Cause: x.Cause, State: string(x.State), Reason: control.Known(x.Reason), Done: append([]string{}, x.Done...),
		Queue: []string{}, Waiting: control.Known(x.Why), Began: control.Known(x.Began), Ended: control.Known(x.Ended)}
	for _, n := range x.Queue {
		v.Queue = append(v.Queue, n.Name)
	}
	if t := x.Turn; t != nil {
		v.Current = &t.Name
		if t.Stage == Replacing || t.Stage == Proving {
			v.Waiting = control.Known("the pod that takes the place of " + t.Name)
		}
	}
	return v
}

// Standing is where the pool's rotation stands, for `ps`.
func (r *Rotator) Standing() control.RotationShown {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := control.RotationShown{State: "idle", Next: control.Known(r.o.Pool.Plan.Next(time.Now()))}
	x := r.state.Rotation
	if x == nil {
		return v
	}
	v.Last = control.Known(x.Began)
	if x.State != Done {
		v.State = string(x.State)
	}
	if x.State != Running {
		v.LastResult = control.Known(string(x.State))
	}
	return v
}
