package main

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/configs"
	"roundhouse/configs/workerid"
	"roundhouse/kube"
	"roundhouse/live"
	"roundhouse/supervisor"
	"roundhouse/supervisor/core"
	"roundhouse/supervisor/pods"
	"roundhouse/supervisor/schedule"
)

// holderName is this door, as Leases name it: a host's name comes again.
func holderName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "roundhouse"
	}
	return host + "_" + rand.Text()
}

// rotator rotates a pool's pods; nil where the pool has no rotation block. c.mu is held.
func (c *cluster) rotator(name string, p *podPool) *pods.Rotator {
	if !p.from.Pods.Rotates {
		return nil
	}
	r := p.from.Rotation
	plan, err := schedule.Of(name, r)
	if err != nil {
		panic("BUG: the configuration's check let a schedule pass: " + err.Error())
	}
	pool := pods.Pool{Name: name, Plan: plan, Drain: r.DrainTimeout.Std(), Ready: r.ReadyTimeout.Std(), MinReady: r.MinReady, Times: c.times}
	namespace := p.from.Pods.Namespace
	if namespace == "" {
		namespace = c.client.Namespace
	}
	return pods.New(pods.Options{
		Pool: pool, Client: c.client, Namespace: namespace, Of: podsOf(p.from.Pods), Holder: c.holder, Log: c.log,
		Known: func() map[string]pods.Known { return c.podsKnown(name) },
		Fault: func(err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.pools[name] == p && (err != nil || p.unrotated != nil) {
				p.unrotated = err
				c.complain()
			}
		},
	})
}

// podsOf names the pods of a pool.
func podsOf(p configs.Pods) string {
	if p.InferencePool != "" {
		return "inference_pool " + p.InferencePool
	}
	return "selector " + p.Selector
}

// fresh is how old an engine's own count of its requests may be.
const fresh = 5 * time.Second

// podsKnown is what the door knows of a pool's pods. A pod of which it lacks a port is
// left out.
func (c *cluster) podsKnown(pool string) map[string]pods.Known {
	var members []kube.Member
	c.mu.Lock()
	if p := c.pools[pool]; p != nil {
		members = p.members
	}
	c.mu.Unlock()
	workers := map[string]*control.WorkerState{}
	state := c.door.State()
	for i := range state.Workers {
		workers[state.Workers[i].ID] = &state.Workers[i]
	}
	all, lacking := map[string]pods.Known{}, map[string]bool{}
	for _, m := range members {
		w := workers[workerid.Of(pool, m.Name)]
		if w == nil {
			lacking[m.Pod] = true
			continue
		}
		k, another := all[m.Pod]
		k.Idle = idles(w) && (k.Idle || !another)
		if w.State != phase.Ready && w.State != phase.Draining && w.State != phase.Drained {
			k.Failing = string(w.State) + ": " + w.Reason
		}
		all[m.Pod] = k
	}
	maps.DeleteFunc(all, func(pod string, _ pods.Known) bool { return lacking[pod] })
	return all
}

// idles reports whether a worker has no request: by the engine's own count, which has those
// of everybody.
func idles(w *control.WorkerState) bool {
	q := &w.Requests
	return q.InFlight == 0 && q.Elsewhere == 0 && q.Running != nil && *q.Running == 0 && (q.Waiting == nil || *q.Waiting == 0) &&
		w.KV.ReportAgeSeconds != nil && *w.KV.ReportAgeSeconds < fresh.Seconds()
}

// rotators are the pools whose pods are rotated, by name.
func (c *cluster) rotators() map[string]*pods.Rotator {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]*pods.Rotator{}
	for name, p := range c.pools {
		if p.rotator != nil {
			all[name] = p.rotator
		}
	}
	return all
}

// Standing implements balancer.Rotations.
func (c *cluster) Standing(pool string) (control.RotationShown, bool) {
	r := c.rotators()[pool]
	if r == nil {
		return control.RotationShown{}, false
	}
	return r.Standing(), true
}

// List implements balancer.Rotations.
func (c *cluster) List() (rotations []live.Rotation, schedules []live.Schedule) {
	all := c.rotators()
	rotations, schedules = []live.Rotation{}, []live.Schedule{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if r := all[name].Rotation(); r != nil {
			rotations = append(rotations, *r)
		}
		c.mu.Lock()
		cfg := c.pools[name].from.Rotation
		c.mu.Unlock()
		s := all[name].Standing()
		schedules = append(schedules, live.Schedule{Pool: name, Schedule: control.Known(cfg.Schedule), Timezone: cfg.Timezone,
			Next: s.Next, Last: s.Last, LastResult: s.LastResult, Blackout: append([]string{}, cfg.Blackout...)})
	}
	return rotations, schedules
}

// ServeHTTP answers the admin API's requests about rotations.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rotations, schedules := c.List()
	var v any
	var err error
	switch {
	case r.URL.Path == "/api/rotations":
		v = map[string]any{"schema": 1, "rotations": rotations}
	case r.URL.Path == "/api/schedule":
		v = map[string]any{"schema": 1, "schedules": schedules}
	default:
		v, err = c.rotate(r)
	}
	if err != nil {
		supervisor.FailWith(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the asker may be gone
}

// rotate begins, continues or aborts a rotation, or tells what one would meet.
func (c *cluster) rotate(r *http.Request) (any, error) {
	var ask supervisor.RotateCommand
	if err := supervisor.Body(r, &ask); err != nil {
		return nil, err
	}
	pool := r.PathValue("pool")
	rotator := c.rotators()[pool]
	if rotator == nil {
		return nil, core.Conflictf("pool %q has no rotation block, or its workers are no pods: this door rotates nothing of it", pool)
	}
	if ask.DryRun {
		return map[string]any{"schema": 1, "dry_run": true, "turns": rotator.Preview()}, nil
	}
	var names []string
	if name := r.PathValue("name"); name != "" {
		pod, err := c.podOf(pool, name)
		if err != nil {
			return nil, err
		}
		names = []string{pod}
	}
	by, now := control.Asker(r), time.Now()
	state, err := rotator.Command(r.Context(), func(in pods.State, seen []pods.Pod) (pods.State, error) {
		switch {
		case ask.Abort:
			return pods.Abort(in, by, now)
		case ask.Continue:
			return pods.Continue(in)
		}
		return pods.Rotate(in, seen, names, now)
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"schema": 1, "rotation": pods.Shown(pool, state)}, nil
}

// podOf is the pod of a worker.
func (c *cluster) podOf(pool, worker string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pools[pool]; p != nil {
		for _, m := range p.members {
			if m.Name == worker {
				return m.Pod, nil
			}
		}
	}
	return "", core.ErrUnknown
}
