package supervisor

import (
	"math"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/configs/workerid"
	"roundhouse/supervisor/core"
	"roundhouse/worker/device"
)

// shown puts a time of the steady clock on the wall's; zero is null.
func (s *Supervisor) shown(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	out := s.clock.OnWall(t).UTC().Round(time.Millisecond)
	return &out
}

// workers is the answer to GET /api/workers.
func (s *Supervisor) workers() control.WorkersShown {
	v := control.WorkersShown{Schema: 1, At: time.Now().UTC(), Workers: []control.WorkerShown{}}
	for _, p := range s.plan.pools {
		for _, name := range s.workerNames(p) {
			v.Workers = append(v.Workers, s.workerShown(p.Name, name))
		}
	}
	return v
}

func (s *Supervisor) workerShown(pool, name string) control.WorkerShown {
	id := workerid.Of(pool, name)
	w, exists := s.memory.intent.Workers[id]
	if !exists {
		w = core.Worker{Phase: core.Starting, Reason: "its driver has not answered yet", Since: s.clock.Now()}
	}
	v := control.WorkerShown{
		ID: id, Pool: pool, Name: name, Driver: s.plan.kinds[id].driver, State: w.Phase, Reason: control.Known(w.Reason),
		Since: *s.shown(w.Since), Models: s.models(id), NextTry: s.shown(w.NextTry), LastError: control.Known(w.LastError),
		Restarts: w.Restarts, Generation: w.Generation, Started: s.shown(w.Started), Place: s.placeOf(id),
	}
	if url, _, ok := s.probed(id); ok {
		v.URL = control.Known(url)
	}
	if p := s.fleet.of(id).probe; p != nil && v.LastError == nil {
		v.LastError = control.Known(p.adapting.failed)
	}
	if w.Phase == core.Draining {
		v.Drain = &control.DrainShown{Deadline: s.shown(w.Deadline)}
	}
	if s.kind(id) == "roundhouse" && v.URL != nil && v.Driver == "process" {
		v.Version = control.Known(s.options.Version)
	}
	if i := s.fleet.of(id).instance; i.Running && i.Memory > 0 {
		held := float64(i.Memory)
		v.Device.HostMemory = &held
	}
	s.account(&v, w)
	return v
}

// account adds what the doors know: their sums, and the latest report.
func (s *Supervisor) account(v *control.WorkerShown, w core.Worker) {
	for _, d := range s.gate.living() {
		st := findWorker(d.state, v.ID)
		if st == nil || st.Generation != w.Generation {
			continue
		}
		if st.Modalities != nil {
			v.Modalities = st.Modalities
		}
		v.KV.ChargedTokens += st.KV.ChargedTokens
		v.KV.ForeignTokens = max(v.KV.ForeignTokens, st.KV.ForeignTokens)
		v.KV.CapacityTokens = newer(v.KV.CapacityTokens, st.KV.CapacityTokens)
		v.KV.ReportedTokens = newer(v.KV.ReportedTokens, st.KV.ReportedTokens)
		v.KV.ReportAgeSeconds = newer(v.KV.ReportAgeSeconds, st.KV.ReportAgeSeconds)
		v.Requests.InFlight += st.Requests.InFlight
		v.Requests.Running = newer(v.Requests.Running, st.Requests.Running)
		v.Requests.Waiting = newer(v.Requests.Waiting, st.Requests.Waiting)
		v.Requests.PrefillTokens = newer(v.Requests.PrefillTokens, st.Requests.PrefillTokens)
		v.Requests.OldestSeconds = newer(v.Requests.OldestSeconds, st.Requests.OldestSeconds)
		account(&v.Traffic, &v.Device, st)
		// The door's findings go before what is wanted of a worker in service.
		if w.Phase == core.Ready && (st.State == phase.Ejected || st.State == phase.Unreachable) {
			v.State, v.Reason, v.Since = phase.Ejected, control.Known(st.Reason), st.Since.UTC()
		}
	}
	if c := v.KV.CapacityTokens; c != nil && *c > 0 {
		usage := math.Round(float64(v.KV.ChargedTokens+v.KV.ForeignTokens)/float64(*c)*1000) / 1000
		v.KV.Usage = &usage
	}
}

// account adds what one door knows of a worker's traffic, and of its device.
func account(t *control.Traffic, d *control.Device, st *control.WorkerState) {
	t.Served, t.Failed, t.Tokens = sum(t.Served, st.Served), sum(t.Failed, st.Failed), sum(t.Tokens, st.Tokens)
	t.TTFTSeconds = newer(t.TTFTSeconds, control.Known(st.TTFTSeconds))
	t.TokensPerSecond = newer(t.TokensPerSecond, control.Known(st.TokensPerSecond))
	t.PrefixHits, t.Preemptions = newer(t.PrefixHits, st.PrefixHits), newer(t.Preemptions, st.Preemptions)
	if st.Device != nil {
		held := d.HostMemory
		*d = *st.Device
		d.HostMemory = held
	}
}

func sum(a *int64, b int64) *int64 {
	if a != nil {
		b += *a
	}
	return &b
}

func newer[T any](old, next *T) *T {
	if next != nil {
		return next
	}
	return old
}

// models are those that a worker says it serves, else those it is to serve.
func (s *Supervisor) models(id string) []string {
	if p := s.fleet.of(id).probe; p != nil && len(p.models) > 0 {
		return p.models
	}
	if m := s.plan.kinds[id].models; m != nil {
		return m
	}
	return []string{}
}

func (s *Supervisor) placeOf(id string) control.PlaceShown {
	m := s.fleet.of(id)
	i, place := m.instance, m.instance.Place
	if !m.found {
		place = s.memory.specs[s.memory.intent.Workers[id].Hash].Place
	}
	v := control.PlaceShown{
		Node: control.Known(i.Node), Container: control.Known(i.Container), Image: control.Known(i.Image), CPUs: control.Known(place.CPUs), GPUs: []string{}, NUMA: append([]int{}, place.NUMA...),
	}
	if i.Running {
		v.PID = control.Known(i.PID)
	}
	for _, g := range place.GPUs {
		v.GPUs = append(v.GPUs, g.ID)
	}
	if len(v.NUMA) == 0 && place.CPUs != "" {
		v.NUMA = device.NodesOf(device.Nodes(s.options.Sysfs), place.CPUs)
	}
	return v
}

// pools is the answer to GET /api/pools.
func (s *Supervisor) pools() control.PoolsShown {
	v := control.PoolsShown{
		Schema: 1, At: time.Now().UTC(), Door: s.gate.shown(), Pools: []control.PoolShown{}, Canaries: s.gate.trials(),
		Supervisor: &control.SupervisorShown{State: string(phase.Ready), Version: s.options.Version},
	}
	if s.memory.failed != nil || s.memory.disk.full {
		v.Supervisor.State = "cannot write its journal"
	}
	for i, p := range s.plan.pools {
		pool := control.PoolShown{Name: p.Name, Policy: s.plan.config.Pools[i].Policy, Task: control.Known(s.plan.config.Pools[i].Task), Desired: len(p.Workers)}
		for _, spec := range p.Workers {
			if s.memory.intent.Workers[workerid.Of(p.Name, spec.Name)].Phase == core.Ready {
				pool.Ready++
			}
		}
		pool.Rotation = s.poolRotation(p)
		v.Pools = append(v.Pools, pool)
	}
	return v
}

func (s *Supervisor) poolRotation(p core.Pool) control.RotationShown {
	v := control.RotationShown{State: "idle", Next: s.nextRun(p)}
	r, ok := s.memory.intent.Rotations[p.Name]
	if !ok {
		return v
	}
	switch r.State {
	case core.Running, core.Halted:
		v.State = string(r.State)
	}
	v.Last = s.shown(r.Began)
	if r.State != core.Running {
		v.LastResult = control.Known(string(r.State))
	}
	return v
}

// nextRun is when a pool's schedule is due next, on the wall's clock.
func (s *Supervisor) nextRun(p core.Pool) *time.Time {
	c := s.memory.intent.Pools[p.Name]
	from := s.clock.Wall()
	if c.Off {
		if c.OffUntil.IsZero() {
			return nil
		}
		from = c.OffUntil
	}
	next := p.Plan.Next(from)
	if run := p.Plan.Named(from); p.ByGap() && run.Equal(c.Run) {
		next = c.Moment // a quiet one was chosen
	}
	if next.IsZero() {
		return nil
	}
	next = next.UTC()
	return &next
}
