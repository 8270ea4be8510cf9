package balancer

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"io"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/keyfile"
	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/lease"
	"roundhouse/configs"
	"roundhouse/configs/workerid"
	"roundhouse/live"
	"roundhouse/web"
)

// Admin is the admin API of a door that no supervisor speaks for.
type Admin struct {
	Config configs.Admin
	// Reload takes the configuration anew and says what changed. Nil: there is
	// nothing to take.
	Reload func() (changes []string, err error)
	// Shown is the configuration without its secrets.
	Shown func() any
	// Changes shows how the file differs from what is in force. Nil: there is no file.
	Changes func() any
	File    string         // the configuration's
	Keys    *keyfile.Store // made at run time
	// Rotations replaces workers, one after the other. Nil: nothing here does.
	Rotations Rotations
}

// Rotations is what replaces the workers of pools. It serves the admin API's requests about
// rotations and schedules.
type Rotations interface {
	http.Handler
	// Standing says where a pool's rotation stands; ok is false for a pool that has none.
	Standing(pool string) (r control.RotationShown, ok bool)
	List() ([]live.Rotation, []live.Schedule)
}

// ServeAdmin serves the door's own admin API until the door ends. Call it
// before Run.
func (d *Door) ServeAdmin(l net.Listener, a Admin) {
	s := &http.Server{Handler: d.adminHandler(a), ReadHeaderTimeout: 10 * time.Second}
	d.wg.Add(2)
	go func() {
		defer d.wg.Done()
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			d.log.Error("the admin API has ended", "error", err.Error())
		}
	}()
	go func() {
		defer d.wg.Done()
		<-d.ctx.Done()
		s.Close()
	}()
}

// adminHandler is the part of the admin API that a door answers by itself.
func (d *Door) adminHandler(a Admin) http.Handler {
	m := http.NewServeMux()
	hub := live.New(live.Options{Source: lookout{d, a.Rotations}, Version: d.opts.Build, Assets: web.Digest()})
	d.wg.Go(func() { hub.Run(d.ctx) })
	m.HandleFunc("GET /api/stream", hub.Stream)
	m.HandleFunc("GET /api/history", hub.History)
	m.HandleFunc("GET /api/thresholds", live.Thresholds)
	private := http.StripPrefix("/api", d.Private())
	for _, same := range []string{"GET /api/requests", "GET /api/queue", "DELETE /api/requests/{id}", "GET /api/decisions", "GET /api/decisions/{id}", "POST /api/try/", "GET /api/plugins", "PUT /api/totals", "GET /api/canaries", "POST /api/canaries/{route}/{verb}"} {
		m.Handle(same, private)
	}
	m.Handle("GET /metrics", d.Private())
	m.HandleFunc("GET /api/usage", d.serveUsage)
	d.keysAPI(a).Mount(m)
	m.HandleFunc("GET /api/workers", func(w http.ResponseWriter, _ *http.Request) { answer(w, d.workersShown()) })
	m.HandleFunc("GET /api/pools", func(w http.ResponseWriter, _ *http.Request) { answer(w, d.poolsShown(a.Rotations)) })
	if a.Rotations != nil {
		for _, pattern := range []string{"GET /api/rotations", "GET /api/schedule"} {
			m.Handle(pattern, a.Rotations)
		}
	}
	m.HandleFunc("POST /api/pools/{pool}/{verb}", a.rotating(aloneOnly))
	m.HandleFunc("GET /api/version", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"schema": 1, "version": d.opts.Build, "door": d.opts.Build, "pid": os.Getpid()})
	})
	m.HandleFunc("GET /api/config", func(w http.ResponseWriter, _ *http.Request) { answer(w, a.Shown()) })
	m.HandleFunc("GET /api/config/changes", func(w http.ResponseWriter, _ *http.Request) {
		if a.Changes == nil {
			control.Fail(w, http.StatusConflict, "there is no file to compare with")
			return
		}
		answer(w, a.Changes())
	})
	m.HandleFunc("POST /api/reload", func(w http.ResponseWriter, _ *http.Request) {
		if a.Reload == nil {
			control.Fail(w, http.StatusConflict, "there is no file to reload")
			return
		}
		changes, err := a.Reload()
		if err != nil {
			control.Fail(w, http.StatusBadRequest, err.Error())
			return
		}
		answer(w, map[string]any{"schema": 1, "changes": changes})
	})
	m.HandleFunc("POST /api/workers/{pool}/{name}/{verb}", a.rotating(d.commandWorker))
	for _, page := range []string{"GET /{$}", "GET /ui", "GET /ui/"} {
		m.Handle(page, web.Handler())
	}
	m.HandleFunc("/api/", aloneOnly)
	return control.Guard(a.Config, m)
}

// aloneOnly answers what is asked of a supervisor.
func aloneOnly(w http.ResponseWriter, _ *http.Request) {
	control.Fail(w, http.StatusNotFound, "this door runs alone: what starts, stops and turns workers is a supervisor's")
}

// rotating has commands to rotate go to where workers are rotated, if anything here does.
func (a *Admin) rotating(other http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if a.Rotations != nil && r.PathValue("verb") == "rotate" {
			a.Rotations.ServeHTTP(w, r)
			return
		}
		other(w, r)
	}
}

// commandWorker drains a worker and puts it back. What else there is to do with
// one needs a supervisor.
func (d *Door) commandWorker(w http.ResponseWriter, r *http.Request) {
	id, verb := workerid.Of(r.PathValue("pool"), r.PathValue("name")), r.PathValue("verb")
	state := map[string]phase.Phase{"drain": phase.Draining, "undrain": phase.Ready}[verb]
	if state == "" {
		control.Fail(w, http.StatusNotFound, "this door runs alone: it can drain and undrain a worker; to "+verb+" one takes a supervisor")
		return
	}
	var body struct {
		Timeout configs.Duration `json:"timeout"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil && r.ContentLength > 0 {
		control.Fail(w, http.StatusBadRequest, "the body is not JSON: "+err.Error())
		return
	}
	err := d.Change(func(set *control.WorkerSet) error {
		for i := range set.Pools {
			for j := range set.Pools[i].Workers {
				c := &set.Pools[i].Workers[j]
				if workerid.Of(set.Pools[i].Name, c.Name) != id {
					continue
				}
				c.State, c.Reason, c.Deadline = state, "", nil
				if state == phase.Draining {
					c.Reason = "operator"
					if body.Timeout > 0 {
						until := time.Now().Add(time.Duration(body.Timeout))
						c.Deadline = &until
					}
				}
				return nil
			}
		}
		return errNoWorker
	})
	switch {
	case errors.Is(err, errNoWorker):
		control.Fail(w, http.StatusNotFound, "there is no worker "+id)
	case err != nil:
		control.Fail(w, http.StatusConflict, err.Error())
	default:
		for _, w2 := range d.current().workers {
			if w2.ID == id {
				answer(w, map[string]any{"schema": 1, "worker": d.shown(w2)})
			}
		}
	}
}

var errNoWorker = errors.New("there is no such worker")

// Change puts a changed copy of the worker set in force, for a door that no
// supervisor speaks for.
func (d *Door) Change(change func(*control.WorkerSet) error) error {
	return d.change(change, true)
}

// Refind has Options.Found put its workers in the set anew. What else of the set cannot
// be had, such as a certificate whose file is missing, holds no worker up.
func (d *Door) Refind() error {
	return d.change(func(*control.WorkerSet) error { return nil }, false)
}

// NoteCluster enters why the workers in a cluster are not in view; nil: they are.
func (d *Door) NoteCluster(err error) { d.faults.note(d.log, faultCluster, err) }

// Await has the door say at /health that it is starting, while workers are still sought.
func (d *Door) Await(sought bool) { d.seeking.Store(sought) }

// change puts a changed copy of the worker set in force.
func (d *Door) change(change func(*control.WorkerSet) error, strict bool) error {
	d.applying.Lock()
	defer d.applying.Unlock()
	set := d.current().set
	if set.Epoch != 0 {
		return lease.ErrEpoch
	}
	set.Pools = append([]control.Pool(nil), set.Pools...)
	for i := range set.Pools {
		set.Pools[i].Workers = append([]control.Worker(nil), set.Pools[i].Workers...)
	}
	if err := change(&set); err != nil {
		return err
	}
	if d.opts.Found != nil {
		d.opts.Found(&set)
	}
	set.Version++
	set.Door = filled(set.Door)
	return d.apply(set, strict)
}

// keysAPI makes, lists and revokes keys.
func (d *Door) keysAPI(a Admin) *keyfile.API {
	return &keyfile.API{
		Store:      a.Keys,
		Configured: func(context.Context) ([]configs.Key, string, error) { return d.current().set.Door.Keys, a.File, nil },
		Used:       func(context.Context) *control.KeysUse { return d.keysUse() },
		Changed: func(_ context.Context, by, what string) control.Taken {
			err := d.Change(func(set *control.WorkerSet) error {
				set.Keys, set.Keyed = a.Keys.Keys(set.Door.Keys), a.Keys.Asked()
				return nil
			})
			if err != nil {
				d.log.Error("a change of keys is not taken up", "key", what, "error", err.Error())
				return control.Taken{Waiting: []string{d.id}}
			}
			d.log.Info("key", "why", what, "by", by)
			return control.Taken{Doors: 1, Waiting: []string{}}
		},
	}
}

func (d *Door) workersShown() control.WorkersShown {
	v := d.current()
	out := []control.WorkerShown{}
	for _, w := range v.workers {
		out = append(out, d.shown(w))
	}
	return control.WorkersShown{Schema: 1, At: time.Now().UTC(), Workers: out}
}

// shown is the worker as the admin API shows it.
func (d *Door) shown(w *fleet.Worker) control.WorkerShown {
	s := w.State(&d.fleet)
	pool, name := workerid.Split(w.ID)
	shown := control.WorkerShown{ID: w.ID, Pool: pool, Name: name, Driver: d.driver(pool), State: s.State, Reason: control.Known(s.Reason), Since: s.Since.UTC(),
		Models: s.Models, Modalities: s.Modalities, KV: s.KV, Requests: s.Requests, Traffic: s.Traffic(), Generation: s.Generation, Place: control.PlaceShown{GPUs: []string{}, NUMA: []int{}}}
	if s.Device != nil {
		shown.Device = *s.Device
	}
	cfg := w.Config()
	shown.URL = control.Known(cfg.URL)
	if cfg.State == phase.Draining {
		shown.Drain = &control.DrainShown{Deadline: cfg.Deadline}
	}
	return shown
}

// driver is what runs a pool's workers.
func (d *Door) driver(pool string) string {
	for _, p := range d.current().set.Pools {
		if p.Name == pool && p.Driver != "" {
			return p.Driver
		}
	}
	return "static"
}

func (d *Door) poolsShown(rotations Rotations) control.PoolsShown {
	v, s := d.current(), d.State()
	ready := map[string]int{}
	for _, w := range s.Workers {
		if w.State == phase.Ready {
			ready[workerid.Pool(w.ID)]++
		}
	}
	pools := []control.PoolShown{}
	for _, p := range v.set.Pools {
		shown := control.PoolShown{Name: p.Name, Policy: p.Policy, Task: control.Known(p.Task), Desired: len(p.Workers), Ready: ready[p.Name], Rotation: control.RotationShown{State: "none"}}
		if rotations != nil {
			if r, ok := rotations.Standing(p.Name); ok {
				shown.Rotation = r
			}
		}
		pools = append(pools, shown)
	}
	return control.PoolsShown{Schema: 1, At: time.Now().UTC(), Pools: pools, Canaries: s.Canaries,
		Door: control.DoorShown{State: s.Phase, Version: control.Known(s.Build), Listen: control.Known(s.Listen), Streams: s.Streams, Queued: s.Queued, Faults: append([]control.Fault{}, s.Faults...)}}
}

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
		Door: pools.Door, Pools: pools.Pools, Canaries: pools.Canaries, Workers: l.d.workersShown().Workers, Rotations: []live.Rotation{}, Schedules: []live.Schedule{},
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
