package balancer

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/extend"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/otlp"
	"roundhouse/configs"
	"roundhouse/configs/workerid"
	"roundhouse/plugins"
)

// view is the worker set in force with all that is derived of it. It is
// replaced whole and never changed.
type view struct {
	set     control.WorkerSet
	limits  *limits
	pools   []*pool
	byName  map[string]*pool
	workers []*worker
	routes  map[string]*route  // by name and alias
	models  map[string]*target // by served name
	keys    *keyring
	tls     *tls.Config    // nil: plain HTTP
	ext     *extend.Set    // nil: no plugins
	traces  *otlp.Exporter // nil: none are sent
	trusted []netip.Prefix // whose X-Forwarded-For is believed
}

// target is a model and the pools that serve it.
type target struct {
	model string
	pools []*pool
}

// pluginWithin is how long a worker set waits for a plugin that is new or changed.
const pluginWithin = 15 * time.Second

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
	trusted, err := trustedOf(&set.Door)
	if err != nil {
		return err
	}
	keys, err := newKeyring(set.Door.Keys, old)
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

// replace makes the view of a set that was checked, and puts it in place of the old
// one. d.mu is held.
func (d *Door) replace(set control.WorkerSet, keys *keyring, trusted []netip.Prefix, ext *extend.Set) {
	old := d.current()
	v := &view{tls: d.cert.shown(), set: set, keys: keys, trusted: trusted, ext: ext, byName: map[string]*pool{}, limits: limitsOf(&set.Door.Limits)}
	d.memory.limit.Store(int64(set.Door.Memory))
	d.ledger.Configure(ledger.Breaker{Failures: set.Door.Breaker.Failures, Open: int64(set.Door.Breaker.Open)}, int64(set.Door.SlowStart))
	kept := map[*worker]bool{}
	for i := range set.Pools {
		d.applyPool(v, old, &set.Pools[i], len(set.Pools), kept)
	}
	v.routes = makeRoutes(set.Routes, old)
	v.models = mapModels(v)
	v.traces = d.openTraces(old, set.OTLP.Endpoint)
	d.view.Store(v)
	d.shareOut(v)
	if old.traces != v.traces {
		d.wg.Go(old.traces.Close) // what runs under it may drop its last spans
	}
	for _, w := range old.workers {
		if !kept[w] {
			d.retire(w)
		}
	}
	for _, p := range v.pools {
		p.pump(d)
	}
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
			if _, err := newUpstream(w.URL); err != nil && w.State != phase.Starting {
				return fmt.Errorf("worker %s: %w", workerid.Of(p.Name, w.Name), err)
			}
		}
	}
	return nil
}

func (d *Door) applyPool(v, old *view, cfg *control.Pool, pools int, kept map[*worker]bool) {
	p := old.byName[cfg.Name]
	if p == nil {
		p = newPool(cfg.Name)
		p.prefix.Store(ledger.NewPrefixTable(prefixBytes / max(1, pools)))
		d.ledger.Begin(&p.group, int(xxhash.Sum64String(d.id)%1024))
	}
	end := cfg.ReasoningEnd
	p.end.Store(&end)
	p.gap.Store(int64(cfg.PatienceSeconds * 1e9))
	var workers []*worker
	var accts []*ledger.Worker
	for _, wc := range cfg.Workers {
		up, err := newUpstream(wc.URL)
		if err != nil {
			continue // it has no address yet
		}
		w := p.find(wc.Name)
		if w == nil {
			w = &worker{id: workerid.Of(cfg.Name, wc.Name), pool: p, slot: p.freeSlot(workers)}
			w.acct = &ledger.Worker{ID: w.id, Of: w}
		}
		w.apply(d, wc, up)
		kept[w] = true
		workers = append(workers, w)
		accts = append(accts, w.acct)
	}
	plugin, _ := extend.PolicyName(cfg.Policy)
	p.plugin.Store(&plugin)
	policy, ok := ledger.ParsePolicy(cfg.Policy)
	if !ok {
		policy = ledger.LeastKV
	}
	p.setCanary(cfg.Canary, workers)
	p.policy.Store(int32(policy))
	d.ledger.SetGroup(&p.group, policy, accts)
	p.workers.Store(&workers)
	v.pools = append(v.pools, p)
	v.byName[p.name] = p
	v.workers = append(v.workers, workers...)
}

// prefixBytes is the budget of all prefix tables together.
const prefixBytes = 64 << 20

func (p *pool) find(name string) *worker {
	for _, w := range *p.workers.Load() {
		if w.id == workerid.Of(p.name, name) {
			return w
		}
	}
	return nil
}

// freeSlot returns the least bit of the prefix table that no worker uses.
func (p *pool) freeSlot(also []*worker) int {
	for slot := 0; ; slot++ {
		taken := func(w *worker) bool { return w.slot == slot }
		if !slices.ContainsFunc(*p.workers.Load(), taken) && !slices.ContainsFunc(also, taken) {
			p.forgetSlot(slot)
			return slot
		}
	}
}

func (p *pool) forgetSlot(slot int) {
	if t := p.prefix.Load(); t != nil {
		t.Forget(slot)
	}
}

func (p *pool) setCanary(c *control.Canary, workers []*worker) {
	p.canary.Store(nil)
	if c == nil {
		return
	}
	for _, w := range workers {
		if w.id == workerid.Of(p.name, c.Worker) {
			p.canary.Store(&canary{worker: w, share: c.Share})
		}
	}
}

// limitsOf are the guard's limits by a filled configuration.
func limitsOf(c *configs.Limits) *limits {
	return &limits{
		body: int64(c.Body), headers: int(c.Headers), uploadRate: int64(c.UploadRate), keepAlive: 2 * time.Minute,
		headerRead: time.Duration(c.HeaderRead), bodyIdle: time.Duration(c.BodyIdle),
	}
}

// mapModels finds which pools serve which model: by their configuration, else
// by what their workers say.
func mapModels(v *view) map[string]*target {
	m := map[string]*target{}
	put := func(name string, p *pool) {
		t := m[name]
		if t == nil {
			t = &target{model: name}
			m[name] = t
		}
		if !slices.Contains(t.pools, p) {
			t.pools = append(t.pools, p)
		}
	}
	for i, p := range v.pools {
		for _, name := range v.set.Pools[i].Models {
			put(name, p)
		}
		for _, name := range p.models() {
			put(name, p)
		}
	}
	return m
}

// unknown refuses a model that no pool is known to serve: for good, unless some
// pool has yet to say what it serves.
func (v *view) unknown(name string) *failure {
	if p := v.unsaid(); p != nil {
		return notSaid(p.name)
	}
	return unknownModel(name)
}

// unsaid returns the first pool of which neither the configuration nor a worker
// has said which models it serves, nil if all have.
func (v *view) unsaid() *pool {
	for _, p := range v.pools {
		if !v.says(p) {
			return p
		}
	}
	return nil
}

// says reports whether the configuration or a worker has said what a pool
// serves.
func (v *view) says(p *pool) bool {
	i := slices.Index(v.pools, p)
	return i >= 0 && len(v.set.Pools[i].Models) > 0 || len(p.models()) > 0
}

// remap makes the map of models anew, after a worker's models changed.
func (d *Door) remap() {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := *d.current()
	v.models = mapModels(&v)
	d.view.Store(&v)
}

// retire ends what the door does for a worker that the set no longer names.
func (d *Door) retire(w *worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopReader()
	if up := w.up.Load(); up != nil {
		up.retire()
	}
	d.ledger.SetWorker(w.acct, w.generation(), false, 0, d.now())
	d.metrics.forget(w)
}

// scrapeInterval and scrapeNames are a pool's own, while it exists.
func (d *Door) scrapeInterval(name string) time.Duration {
	for i := range d.current().set.Pools {
		if c := &d.current().set.Pools[i]; c.Name == name && c.Scrape.Interval > 0 {
			return time.Duration(c.Scrape.Interval)
		}
	}
	return 250 * time.Millisecond
}

func (d *Door) scrapeNames(name string) map[string]string {
	for i := range d.current().set.Pools {
		if c := &d.current().set.Pools[i]; c.Name == name {
			return c.Scrape.Names
		}
	}
	return nil
}
