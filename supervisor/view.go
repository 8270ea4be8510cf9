package supervisor

import (
	"math"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/supervisor/core"
	"roundhouse/worker/device"
)

// The shapes of GET /api/workers. Unknown is null, never 0 or absent.
type (
	workersView struct {
		Schema  int          `json:"schema"`
		At      time.Time    `json:"at"`
		Workers []workerView `json:"workers"`
	}

	workerView struct {
		ID         string           `json:"id"`
		Pool       string           `json:"pool"`
		Name       string           `json:"name"`
		Driver     string           `json:"driver"`
		State      string           `json:"state"`
		Reason     *string          `json:"reason"`
		Since      time.Time        `json:"since"`
		URL        *string          `json:"url"`
		Models     []string         `json:"models"`
		KV         control.KV       `json:"kv"`
		Requests   control.Requests `json:"requests"`
		Drain      *drainView       `json:"drain"`
		NextTry    *time.Time       `json:"next_try"`
		LastError  *string          `json:"last_error"`
		Restarts   int              `json:"restarts"`
		Generation uint64           `json:"generation"`
		Started    *time.Time       `json:"started"`
		Version    *string          `json:"version"`
		Place      placeView        `json:"place"`
	}

	drainView struct {
		Deadline *time.Time `json:"deadline"`
	}

	placeView struct {
		PID       *int     `json:"pid"`
		Container *string  `json:"container"`
		Image     *string  `json:"image"`
		GPUs      []string `json:"gpus"`
		NUMA      []int    `json:"numa"`
		CPUs      *string  `json:"cpus"`
	}
)

// known turns a zero value into null.
func known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// shown puts a time of the steady clock on the wall's; zero is null.
func (s *Supervisor) shown(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	out := s.clock.OnWall(t).UTC().Round(time.Millisecond)
	return &out
}

// workers is the answer to GET /api/workers.
func (s *Supervisor) workers() workersView {
	v := workersView{Schema: 1, At: time.Now().UTC(), Workers: []workerView{}}
	for _, p := range s.plan.pools {
		for _, name := range s.workerNames(p) {
			v.Workers = append(v.Workers, s.view(p.Name, name))
		}
	}
	return v
}

func (s *Supervisor) view(pool, name string) workerView {
	id := pool + "/" + name
	w, exists := s.intent.Workers[id]
	if !exists {
		w = core.Worker{Phase: core.Starting, Reason: "its driver has not answered yet", Since: s.clock.Now()}
	}
	v := workerView{
		ID: id, Pool: pool, Name: name, Driver: s.plan.kinds[id].driver, State: string(w.Phase), Reason: known(w.Reason),
		Since: *s.shown(w.Since), Models: s.models(id), NextTry: s.shown(w.NextTry), LastError: known(w.LastError),
		Restarts: w.Restarts, Generation: w.Generation, Started: s.shown(w.Started), Place: s.placeOf(id),
	}
	if url, _, ok := s.probed(id); ok {
		v.URL = known(url)
	}
	if w.Phase == core.Draining {
		v.Drain = &drainView{Deadline: s.shown(w.Deadline)}
	}
	if s.kind(id) == "roundhouse" && v.URL != nil && v.Driver == "process" {
		v.Version = known(s.options.Version)
	}
	s.account(&v, w)
	return v
}

// account adds what the doors know: their sums, and the latest report.
func (s *Supervisor) account(v *workerView, w core.Worker) {
	for _, d := range s.living() {
		st := findWorker(d.state, v.ID)
		if st == nil || st.Generation != w.Generation {
			continue
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
		// The door's findings go before what is wanted of a worker in service.
		if w.Phase == core.Ready && (st.State == "ejected" || st.State == "unreachable") {
			v.State, v.Reason, v.Since = "ejected", known(st.Reason), st.Since.UTC()
		}
	}
	if c := v.KV.CapacityTokens; c != nil && *c > 0 {
		usage := math.Round(float64(v.KV.ChargedTokens+v.KV.ForeignTokens)/float64(*c)*1000) / 1000
		v.KV.Usage = &usage
	}
}

func newer[T any](old, next *T) *T {
	if next != nil {
		return next
	}
	return old
}

// models are those that a worker says it serves, else those it is to serve.
func (s *Supervisor) models(id string) []string {
	if p := s.probes[id]; p != nil && len(p.models) > 0 {
		return p.models
	}
	if m := s.plan.kinds[id].models; m != nil {
		return m
	}
	return []string{}
}

func (s *Supervisor) placeOf(id string) placeView {
	i, exists := s.instances[id]
	place := i.Place
	if !exists {
		place = s.specs[s.intent.Workers[id].Hash].Place
	}
	v := placeView{
		Container: known(i.Container), Image: known(i.Image), CPUs: known(place.CPUs), GPUs: []string{}, NUMA: append([]int{}, place.NUMA...),
	}
	if i.Running {
		v.PID = known(i.PID)
	}
	for _, g := range place.GPUs {
		v.GPUs = append(v.GPUs, g.ID)
	}
	if len(v.NUMA) == 0 && place.CPUs != "" {
		v.NUMA = device.NodesOf(device.Nodes(s.options.Sysfs), place.CPUs)
	}
	return v
}

// The shapes of GET /api/pools: what `roundhouse ps` prints above its workers.
type (
	poolsView struct {
		Schema     int            `json:"schema"`
		At         time.Time      `json:"at"`
		Door       doorView       `json:"door"`
		Supervisor supervisorView `json:"supervisor"`
		Pools      []poolView     `json:"pools"`
	}

	doorView struct {
		State   string  `json:"state"`
		Version *string `json:"version"`
		Listen  *string `json:"listen"`
		Streams int     `json:"streams"`
		Queued  int     `json:"queued"`
	}

	supervisorView struct {
		State   string `json:"state"`
		Version string `json:"version"`
	}

	poolView struct {
		Name     string           `json:"name"`
		Policy   string           `json:"policy"`
		Desired  int              `json:"desired"`
		Ready    int              `json:"ready"`
		Rotation poolRotationView `json:"rotation"`
	}

	poolRotationView struct {
		State      string     `json:"state"`
		Next       *time.Time `json:"next"`
		Last       *time.Time `json:"last"`
		LastResult *string    `json:"last_result"`
	}
)

// pools is the answer to GET /api/pools.
func (s *Supervisor) pools() poolsView {
	v := poolsView{
		Schema: 1, At: time.Now().UTC(), Door: s.doorView(), Pools: []poolView{},
		Supervisor: supervisorView{State: "ready", Version: s.options.Version},
	}
	if s.diskFull != nil || s.disk.full {
		v.Supervisor.State = "cannot write its journal"
	}
	for i, p := range s.plan.pools {
		pool := poolView{Name: p.Name, Policy: s.plan.config.Pools[i].Policy, Desired: len(p.Workers)}
		for _, spec := range p.Workers {
			if s.intent.Workers[p.Name+"/"+spec.Name].Phase == core.Ready {
				pool.Ready++
			}
		}
		pool.Rotation = s.poolRotation(p)
		v.Pools = append(v.Pools, pool)
	}
	return v
}

func (s *Supervisor) poolRotation(p core.Pool) poolRotationView {
	v := poolRotationView{State: "idle", Next: s.nextRun(p)}
	r, ok := s.intent.Rotations[p.Name]
	if !ok {
		return v
	}
	switch r.State {
	case core.Running, core.Halted:
		v.State = string(r.State)
	}
	v.Last = s.shown(r.Began)
	if r.State != core.Running {
		v.LastResult = known(string(r.State))
	}
	return v
}

// nextRun is when a pool's schedule is due next, on the wall's clock.
func (s *Supervisor) nextRun(p core.Pool) *time.Time {
	c := s.intent.Pools[p.Name]
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

func (s *Supervisor) doorView() doorView {
	v := doorView{State: "starting", Listen: known(s.address)}
	for _, d := range s.doors {
		if d.state == nil {
			continue
		}
		v.Streams += d.state.Streams
		v.Queued += d.state.Queued
		if v.State != "ready" && !d.leaving {
			v.State, v.Version = d.state.Phase, known(d.state.Build)
			v.Listen = newer(v.Listen, known(d.state.Listen))
		}
	}
	return v
}
