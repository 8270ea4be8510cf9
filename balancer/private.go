package balancer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/lease"
	"roundhouse/balancer/surface"
)

// openPrivate serves the private socket; nil where the door has none.
func (d *Door) openPrivate() (*http.Server, error) {
	if d.opts.Socket == "" {
		return nil, nil
	}
	os.Remove(d.opts.Socket)
	l, err := net.Listen("unix", d.opts.Socket)
	if err != nil {
		return nil, fmt.Errorf("cannot open the private socket: %w", err)
	}
	if err := os.Chmod(d.opts.Socket, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("cannot protect the private socket: %w", err)
	}
	s := &http.Server{Handler: d.Private(), ReadHeaderTimeout: 10 * time.Second}
	d.wg.Add(1)
	go func() {
		defer d.wg.Done()
		s.Serve(l)
	}()
	return s, nil
}

// Private handles what the supervisor asks over the private socket.
func (d *Door) Private() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("PUT /worker-set", d.putSet)
	m.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { answer(w, d.State()) })
	m.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", metricsType)
		d.writeMetrics(w, r.URL.Query().Get("workers") != "0")
	})
	m.HandleFunc("GET /requests", func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("ended") == "1" {
			answer(w, d.Ended(control.ParseEnded(q)))
			return
		}
		answer(w, d.Requests())
	})
	serveCanaries(&d.common, m)
	m.HandleFunc("GET /queue", func(w http.ResponseWriter, _ *http.Request) { answer(w, d.Queued()) })
	m.HandleFunc("DELETE /requests/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !d.Cancel(r.PathValue("id")) {
			control.Fail(w, http.StatusNotFound, "no such request is in flight")
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	m.HandleFunc("GET /decisions", func(w http.ResponseWriter, r *http.Request) {
		answer(w, d.why.List(control.ParseDecisions(r.URL.Query())))
	})
	m.Handle("POST /try/", several(d.serveTry()))
	m.HandleFunc("GET /decisions/{id}", func(w http.ResponseWriter, r *http.Request) {
		if dec, ok := d.why.Find(r.PathValue("id")); ok {
			answer(w, dec)
			return
		}
		control.Fail(w, http.StatusNotFound, "no decision is kept for this request")
	})
	m.HandleFunc("GET /plugins", func(w http.ResponseWriter, _ *http.Request) { answer(w, d.current().ext.Stats()) })
	m.HandleFunc("PUT /totals", d.putTotals)
	m.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) { answer(w, d.keysUse()) })
	m.HandleFunc("GET /usage", d.serveUsage)
	m.HandleFunc("GET /handover", func(w http.ResponseWriter, _ *http.Request) {
		d.peers.findBeside() // whoever asks is one
		answer(w, d.peers.handOver())
	})
	m.HandleFunc("POST /connections", d.takeConnections)
	m.HandleFunc("POST /shutdown", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		d.once.Do(func() { close(d.shutdown) })
	})
	return m
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func (d *Door) putSet(w http.ResponseWriter, r *http.Request) {
	var set control.WorkerSet
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<20)).Decode(&set); err != nil {
		http.Error(w, "the body is not a worker set: "+err.Error(), http.StatusBadRequest)
		return
	}
	ack, err := d.Apply(set)
	switch {
	case errors.Is(err, lease.ErrEpoch):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	default:
		answer(w, ack)
	}
}

// putTotals takes another door's totals.
func (d *Door) putTotals(w http.ResponseWriter, r *http.Request) {
	var t control.Totals
	if err := json.NewDecoder(io.LimitReader(r.Body, 16<<20)).Decode(&t); err != nil {
		http.Error(w, "the body is not a door's totals: "+err.Error(), http.StatusBadRequest)
		return
	}
	d.peers.hear(t)
	answer(w, control.TotalsAck{Door: d.id, Fleet: d.current().fleet()})
}

// Apply puts a worker set in force, keeps it on disk, and grants a lease.
func (d *Door) Apply(set control.WorkerSet) (control.Ack, error) {
	d.applying.Lock()
	defer d.applying.Unlock()
	at := time.Now()
	now := &d.current().set
	if err := d.lease.Admits(&set, now, at); err != nil {
		return control.Ack{}, err
	}
	set.Door = filled(set.Door)
	renewed := set.Epoch == now.Epoch && set.Version == now.Version && reflect.DeepEqual(set, *now)
	if !renewed || d.faults.is(faultPlugins) && at.Sub(d.faults.tried) >= pluginsAgain {
		err := d.apply(set, now.Schema == 0)
		d.faults.note(d.log, faultSet, err)
		if err != nil {
			return control.Ack{}, err
		}
	}
	d.lease.Until = at.Add(lease.Term)
	if !renewed || d.lease.Kept.Before(d.lease.Until) {
		d.lease.Kept = at.Add(lease.Ahead)
		if err := lease.Keep(d.opts.StateDir, &set, d.lease.Kept); err != nil {
			d.log.Error("cannot keep the worker set; a restart of this door would forget it", "error", err.Error())
		}
	}
	return control.Ack{Door: d.id, Epoch: set.Epoch, Version: set.Version, LeaseSeconds: lease.Term.Seconds()}, nil
}

// firstSet puts the set in force that the door starts with: the one it was
// given, else the last one it has kept, under the lease that it had granted.
func (d *Door) firstSet() error {
	d.applying.Lock()
	defer d.applying.Unlock()
	if d.opts.Set != nil {
		set := *d.opts.Set
		set.Door = filled(set.Door)
		return d.apply(set, true)
	}
	if d.opts.StateDir == "" {
		return nil
	}
	k, err := lease.Read(d.opts.StateDir)
	if err == nil && k.Schema == 0 {
		return nil
	}
	if err == nil {
		k.Door = filled(k.Door)
		err = d.apply(k.WorkerSet, true)
	}
	if err != nil {
		d.log.Error("the kept worker set cannot be used; waiting for the supervisor", "error", err.Error())
		return nil
	}
	d.lease = lease.Lease{Until: k.LeaseUntil, Kept: k.LeaseUntil}
	return nil
}

// State is what the door says of itself and of its workers.
func (d *Door) State() control.State {
	v := d.current()
	s := control.State{
		Schema: 1, Door: d.id, PID: os.Getpid(), At: time.Now(), Phase: phase.Ready, Build: d.opts.Build,
		Listen: d.Listen(), Epoch: v.set.Epoch, Set: v.set.Version, Workers: []control.WorkerState{},
	}
	if d.draining.Load() {
		s.Phase = phase.Draining
	}
	s.Canaries = d.canaries.Shown()
	s.Streams, s.Peers, s.Faults = d.live.count(), d.peers.count(), d.faults.list()
	s.Pools = append(s.Pools, d.lobby.Shown("", 0))
	for _, p := range v.pools {
		waiting := p.Queue.Len()
		s.Queued += waiting
		s.Pools = append(s.Pools, p.Tally.Shown(p.Name, waiting))
	}
	for _, w := range v.workers {
		s.Workers = append(s.Workers, w.State(&d.fleet))
	}
	return s
}

// Requests lists what is in flight.
func (d *Door) Requests() []control.InFlight {
	xs := d.live.list(func(*exchange) bool { return true })
	out := make([]control.InFlight, 0, len(xs))
	for _, x := range xs {
		prompt, _ := x.asked.estimate()
		f := control.InFlight{
			ID: x.asked.id, Pool: x.asked.pool.Name, Model: x.asked.model, Priority: surface.PriorityNames[x.asked.priority], Since: x.asked.wall,
			State: phaseNames[x.record.state.Load()], Position: x.asked.pool.Queue.Position(&x.booking.Claim), Output: x.record.generated.Load(), Prompt: prompt,
			Resumes: int(x.record.resumes.Load()), Door: d.id,
		}
		if w := x.booking.worker.Load(); w != nil {
			f.Worker = w.ID
		}
		if f.State == "queued" || f.State == "parked" {
			f.WaitsFor = x.waitsFor()
		}
		if x.asked.route != nil {
			f.Route = x.asked.route.cfg.Name
		}
		if x.asked.key != nil {
			f.Key = x.asked.key.Name
		}
		out = append(out, f)
	}
	return out
}

// Queued lists what waits for room.
func (d *Door) Queued() []control.InFlight {
	out := []control.InFlight{}
	for _, f := range d.Requests() {
		if f.Position > 0 {
			out = append(out, f)
		}
	}
	return out
}

// Cancel ends a request, for an operator.
func (d *Door) Cancel(id string) bool {
	x := d.live.find(id)
	if x == nil {
		return false
	}
	x.booking.cancel(causeOperator)
	return true
}

// keysUse is what is known of the use of the keys.
func (d *Door) keysUse() *control.KeysUse {
	v, now := d.current(), time.Now()
	zone, _ := v.set.Door.BudgetZone() // it was checked when the set was applied
	u := &control.KeysUse{Timezone: zone.String(), Keys: []control.KeyUsed{}}
	u.Day, u.Month = d.usage.Resets(now)
	for _, k := range v.keys.Keys {
		one := control.KeyUsed{Name: k.Name, Live: k.Live()}
		one.Day, one.Month = d.usage.Of(k.Name, now)
		u.Keys = append(u.Keys, one)
	}
	return u
}

// serveUsage answers what was used, by key, model and day.
func (d *Door) serveUsage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if err := control.CheckDays(q); err != nil {
		control.Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	answer(w, d.usage.Rows(q.Get("from"), q.Get("to"), time.Now()))
}

// Ended is what has ended, the newest first, as far as it is kept and a filter takes it.
func (d *Door) Ended(f control.EndedFilter) control.EndedRequests {
	out := control.EndedRequests{Schema: 1, At: time.Now().UTC(), Ended: []control.Ended{}}
	for _, b := range d.past.list() {
		if e := b.shown(d.id); f.Takes(&e) {
			if out.Ended = append(out.Ended, e); len(out.Ended) == f.Limit {
				break
			}
		}
	}
	return out
}
