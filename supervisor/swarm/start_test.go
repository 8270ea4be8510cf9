package swarm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
)

// pulling is an engine that lists one service, whose node pulls, until a time, and
// from then on none, or does not answer.
type pulling struct {
	engine
	until time.Time
	hangs bool
}

func (m *pulling) ServiceList(ctx context.Context, _ swarm.ServiceListOptions) ([]swarm.Service, error) {
	switch {
	case time.Now().Before(m.until):
		one := uint64(1)
		s := swarm.Service{ID: "s"}
		s.Spec.Labels = map[string]string{moby.LabelWorker: "pool/1"}
		s.Spec.Mode.Replicated = &swarm.ReplicatedService{Replicas: &one}
		return []swarm.Service{s}, nil
	case m.hangs:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, nil
}

func (m *pulling) TaskList(context.Context, swarm.TaskListOptions) ([]swarm.Task, error) {
	t := taskOf("n1", swarm.TaskStatePreparing, swarm.TaskStateRunning)
	t.ServiceID = "s"
	return []swarm.Task{t}, nil
}

func (m *pulling) NodeList(context.Context, swarm.NodeListOptions) ([]swarm.Node, error) {
	return []swarm.Node{{ID: "n1", Status: swarm.NodeStatus{State: swarm.NodeStateReady}}}, nil
}

// A service that somebody removes while its node pulls the image ends its start at
// once, and one that Swarm never knew ends it soon: neither is waited for as long as
// an image may take.
func TestRemovedMeanwhile(t *testing.T) {
	f := func(there, within time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			d := &Driver{engine: &pulling{until: began.Add(there)}}
			if err := d.arrived(t.Context(), "pool/1", "s"); err == nil || !strings.Contains(err.Error(), "somebody has removed it") {
				t.Errorf("%v", err)
			}
			if took := time.Since(began); took > within {
				t.Errorf("it was waited for for %v", took)
			}
		})
	}
	f(10*time.Minute, 10*time.Minute+time.Second)
	f(0, callTimeout+time.Second)
}

// A manager that takes a question and never answers is away: nobody waits for it for
// ever, whatever the deadline of who asks.
func TestHungManager(t *testing.T) {
	f := func(what string, do func(context.Context, *Driver) error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			d := &Driver{engine: &pulling{hangs: true}}
			if err := do(t.Context(), d); !errors.Is(err, driver.ErrAway) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	f("stop", func(ctx context.Context, d *Driver) error { return d.Stop(ctx, "pool/1", 1, time.Second) })
	f("logs", func(ctx context.Context, d *Driver) error {
		_, err := d.Logs(ctx, "pool/1", driver.LogOptions{})
		return err
	})
}
