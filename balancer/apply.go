package balancer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"roundhouse/balancer/certificate"
	"roundhouse/balancer/conn"
	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/extend"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/otlp"
	"roundhouse/configs"
	"roundhouse/configs/workerid"
	"roundhouse/plugins"
)

// openTraces is the exporter for an endpoint: the one that is there, where the
// endpoint has not changed.
func (d *Door) openTraces(old *snapshot, endpoint string) *otlp.Exporter {
	switch {
	case endpoint == old.set.OTLP.Endpoint && old.traces != nil:
		return old.traces
	case endpoint == "":
		return nil
	}
	return otlp.Open(endpoint, d.opts.Build, []otlp.Attribute{
		otlp.Text("service.name", "roundhouse"), otlp.Text("service.version", d.opts.Build), otlp.Text("service.instance.id", d.id),
	}, d.log)
}

// pluginsAgain is how long a door waits before it tries plugins again that have not
// come up: while they start, the supervisor waits for its answer.
const pluginsAgain = time.Minute

// apply puts a worker set in force, whole or not at all. Where it is strict, a
// certificate or plugins that cannot be had refuse the set. Else the old ones stay,
// and the rest of the set holds: a door that a file is missing for must still hear
// of its workers. What may fail or wait comes first. d.applying is held.
func (d *Door) apply(set control.WorkerSet, strict bool) error {
	old := d.current()
	if set.Schema != 1 {
		return fmt.Errorf("the worker set has schema %d; this door knows 1", set.Schema)
	}
	trusted, err := trustOf(&set.Door)
	if err != nil {
		return err
	}
	keys, err := keyring.New(slices.Concat(set.Door.Keys, set.Keys), set.Keyed, old.keys)
	if err != nil {
		return err
	}
	zone, err := set.Door.BudgetZone()
	if err != nil {
		return err
	}
	if err := checkSet(&set); err != nil {
		return err
	}
	d.mu.Lock()
	cert, uncertain := d.certify(set.Door.TLS)
	d.mu.Unlock()
	if strict && uncertain != nil {
		return uncertain
	}
	ext, missing := d.plugIn(old.ext, &set)
	if strict && missing != nil {
		return missing
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults.note(d.log, faultCertificate, uncertain)
	d.faults.note(d.log, faultPlugins, missing)
	d.cert = cert
	d.requests.Configure(set.Door.LogRequests)
	d.usage.SetZone(zone, time.Now())
	d.replace(set, keys, trusted, ext)
	return nil
}

// plugIn makes the plugins those of a set; where they do not come up, they are those
// that were there.
func (d *Door) plugIn(old *extend.Set, set *control.WorkerSet) (*extend.Set, error) {
	if d.faults.is(faultPlugins) && time.Since(d.faults.tried) < pluginsAgain && slices.Equal(d.current().set.Plugins, set.Plugins) {
		return old, d.faults.error(faultPlugins)
	}
	ctx, cancel := context.WithTimeout(d.ctx, d.pluginWithin)
	defer cancel()
	ext, err := extend.Apply(ctx, old, set.Plugins, plugins.Options{Log: d.log, Deadline: d.opts.PluginDeadline})
	if err != nil {
		d.faults.tried = time.Now()
		return old, fmt.Errorf("plugins: %w", err)
	}
	return ext, nil
}

// replace makes the snapshot of a set that was checked, and puts it in place of the old
// one. d.mu is held.
func (d *Door) replace(set control.WorkerSet, keys *keyring.Ring, trusted trust, ext *extend.Set) {
	old := d.current()
	v := &snapshot{lines: d.side.batches.inside, tls: d.cert.Shown(set.Door.HTTP2), set: set, keys: keys, trusted: trusted, ext: ext, byName: map[string]*fleet.Pool{}, limits: limitsOf(&set.Door)}
	if old.set.Door.HTTP2 && !set.Door.HTTP2 {
		d.http2.Retire()
	}
	d.memory.Limit.Store(int64(set.Door.Memory))
	d.fleet.FirstByte.Store(int64(set.Door.Limits.FirstByte))
	d.ledger.Configure(ledger.Breaker{Failures: set.Door.Breaker.Failures, Open: int64(set.Door.Breaker.Open)}, int64(set.Door.SlowStart))
	kept := map[*fleet.Worker]bool{}
	for i := range set.Pools {
		p := d.fleet.ApplyPool(old.byName[set.Pools[i].Name], &set.Pools[i], len(set.Pools), kept)
		v.pools = append(v.pools, p)
		v.byName[p.Name] = p
		v.workers = append(v.workers, *p.Workers.Load()...)
	}
	v.routes = makeRoutes(set.Routes, old)
	for _, r := range v.routes {
		r.trial = d.canaries.Of(&r.cfg, time.Now())
	}
	d.canaries.Keep(set.Routes)
	v.models = mapModels(v)
	v.traces = d.openTraces(old, set.OTLP.Endpoint)
	d.snapshot.Store(v)
	if d.opts.Logs != nil && set.Log != old.set.Log {
		d.opts.Logs(set.Log)
	}
	d.peers.shareOut(v)
	if old.traces != v.traces {
		d.wg.Go(old.traces.Close) // what runs under it may drop its last spans
	}
	for _, w := range old.workers {
		if !kept[w] {
			d.fleet.Retire(w)
			d.metrics.Forget(w.ID)
		}
	}
	for _, k := range old.keys.Keys {
		if keys.Configured(k.Name) == nil {
			d.metrics.ForgetKey(k.Name)
		}
	}
	for _, p := range v.pools {
		p.Pump(&d.fleet)
	}
	d.fleet.LookSoon()
}

// checkSet refuses what could only be applied in part.
func checkSet(set *control.WorkerSet) error {
	seen := map[string]bool{}
	for _, p := range set.Pools {
		if p.Name == "" || seen[p.Name] {
			return fmt.Errorf("the worker set has a pool without a name, or two pools %q", p.Name)
		}
		seen[p.Name] = true
		names := map[string]bool{}
		for _, w := range p.Workers {
			if w.Name == "" || names[w.Name] {
				return fmt.Errorf("pool %q has a worker without a name, or two workers %q", p.Name, w.Name)
			}
			names[w.Name] = true
			if _, err := conn.NewUpstream(w.URL); err != nil && w.State != phase.Starting {
				return fmt.Errorf("worker %s: %w", workerid.Of(p.Name, w.Name), err)
			}
		}
	}
	return nil
}

// remap makes the map of models anew, after a worker's models changed.
func (d *Door) remap() {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := *d.current()
	v.models = mapModels(&v)
	d.snapshot.Store(&v)
}

// certify finds the certificate of a worker set. Where its files do not load, the
// old one stays, and so does plain HTTP: with it comes the error. d.mu is held.
func (d *Door) certify(want *configs.TLS) (*certificate.Certificate, error) {
	if want == nil {
		return nil, nil
	}
	old := d.cert
	if old != nil && old.Files == *want {
		_, err := old.Refresh()
		return old, err
	}
	c, err := certificate.Read(*want)
	if err != nil {
		return old, err
	}
	return c, nil
}

// recertify looks whether the certificate's files have changed. d.mu is held.
func (d *Door) recertify() {
	v := d.current()
	want := v.set.Door.TLS
	if want == nil {
		return
	}
	if d.cert != nil && d.cert.Files == *want {
		changed, err := d.cert.Refresh()
		switch {
		case err != nil:
			d.faults.note(d.log, faultCertificate, err)
		case changed:
			d.faults.note(d.log, faultCertificate, nil)
			d.log.Info("the certificate was renewed", "cert", want.Cert)
		}
		return
	}
	if c, err := certificate.Read(*want); err == nil { // that of the set in force did not load before
		next := *v
		d.cert, next.tls = c, c.Shown(next.set.Door.HTTP2)
		d.snapshot.Store(&next)
		d.faults.note(d.log, faultCertificate, nil)
	}
}
