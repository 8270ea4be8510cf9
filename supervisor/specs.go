package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"roundhouse/configs"
	"roundhouse/configs/workerid"
	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/schedule"
)

// deployment is a configuration as the supervisor works by it.
type deployment struct {
	config *configs.Config // with the pools scaled
	file   *configs.Config // as the file has it
	pools  []core.Pool
	specs  map[string]driver.Spec // by hash
	kinds  map[string]worker      // by pool/name
	images map[string]core.Image  // by pool
	plan   planner
	drawn  time.Time // or when better places were last looked for
}

// worker is what is configured of a worker besides its Spec.
type worker struct {
	pool   string
	driver string
	own    bool // our own engine
	config configs.Worker
	models []string
}

// names reports whether a pool is run by the named driver.
func (b *deployment) names(driver string) bool {
	return slices.ContainsFunc(b.config.Pools, func(p configs.Pool) bool { return p.Driver == driver })
}

// has reports whether a pool is configured.
func (b *deployment) has(pool string) bool {
	return slices.ContainsFunc(b.pools, func(p core.Pool) bool { return p.Name == pool })
}

// homeless returns the first worker without a place that old had no part in: one
// that is new, or wants another place than before. A card that has gone since is no
// fault of whoever changes something else.
func (b *deployment) homeless(old *deployment) error {
	for _, p := range b.pools {
		for _, w := range p.Workers {
			id := workerid.Of(p.Name, w.Name)
			was, known := old.plan.needs[id]
			is := b.plan.needs[id]
			if w.Lacks != "" && (!known || was.Count != is.Count || !slices.Equal(was.GPUs, is.GPUs)) {
				return fmt.Errorf("worker %s: %s", id, w.Lacks)
			}
		}
	}
	return nil
}

// placed reports whether some worker can run, if there are any to run.
func (b *deployment) placed() error {
	var first error
	for _, p := range b.pools {
		for _, w := range p.Workers {
			if w.Lacks == "" {
				return nil
			}
			if first == nil {
				first = fmt.Errorf("worker %s: %s", workerid.Of(p.Name, w.Name), w.Lacks)
			}
		}
	}
	return first
}

// newDeployment makes the deployment of a configuration. images are what its images' names were
// found to stand for, by pool.
func newDeployment(cfg *configs.Config, plan planner, images map[string]core.Image) (*deployment, error) {
	b := &deployment{config: cfg, specs: map[string]driver.Spec{}, kinds: map[string]worker{}, plan: plan, images: images}
	for i := range cfg.Pools {
		if err := b.pool(&cfg.Pools[i]); err != nil {
			return nil, fmt.Errorf("pool %q: %w", cfg.Pools[i].Name, err)
		}
	}
	return b, nil
}

// scaled is a configuration with other numbers of workers, in pools whose
// workers are counted, not named.
func scaled(cfg *configs.Config, scale map[string]int) *configs.Config {
	out := *cfg
	out.Pools = append([]configs.Pool(nil), cfg.Pools...)
	for i := range out.Pools {
		if n, ok := scale[out.Pools[i].Name]; ok {
			out.Pools[i].Workers = counted(n)
		}
	}
	return &out
}

// counted are the workers of `workers = n`.
func counted(n int) []configs.Worker {
	list := make([]configs.Worker, n)
	for i := range list {
		list[i].Name = strconv.Itoa(i + 1)
	}
	return list
}

func (b *deployment) pool(p *configs.Pool) error {
	r := p.Rotation
	parsed, err := schedule.Of(p.Name, r)
	if err != nil {
		return err
	}
	pool := core.Pool{
		Name: p.Name, MinReady: min(r.MinReady, max(0, len(p.Workers)-1)), Plan: parsed, Surge: r.Strategy == "surge" && p.Driver != "static",
		Drain: r.DrainTimeout.Std(), Ready: r.ReadyTimeout.Std(), Grace: r.StopGrace.Std(),
		AfterRequests: r.AfterRequests, AfterTokens: r.AfterTokens, MemoryGrowth: r.MemoryGrowth, Slowdown: r.Slowdown,
	}
	if p.Canary != nil {
		pool.Canary = &core.Canary{Share: p.Canary.Share, MinRequests: int64(p.Canary.MinRequests)}
	}
	for _, w := range p.Workers {
		spec, err := b.worker(p, w)
		if err != nil {
			return err
		}
		pool.Workers = append(pool.Workers, spec)
	}
	if pool.Surge {
		if err := b.relief(p, &pool); err != nil {
			return err
		}
	}
	b.pools = append(b.pools, pool)
	return nil
}

// worker draws one worker of a pool.
func (b *deployment) worker(p *configs.Pool, w configs.Worker) (core.Spec, error) {
	id := workerid.Of(p.Name, w.Name)
	engine, box := p.Of(w)
	spec := driver.Spec{
		Pool: p.Name, Name: w.Name, Engine: engine, Container: box, Port: w.Port, Takeover: w.Takeover,
		Place: b.plan.places[id], Grace: p.Rotation.StopGrace.Std(),
	}
	plain, err := fingerprint(spec)
	if err != nil {
		return core.Spec{}, err
	}
	if known := b.images[p.Name]; known.Name == p.Container.Image {
		spec.Image = known.ID
	}
	if spec.Hash, err = fingerprint(spec); err != nil {
		return core.Spec{}, err
	}
	b.specs[spec.Hash] = spec
	b.kinds[id] = worker{pool: p.Name, driver: p.Driver, own: p.Driver == "process" && p.Container.Command == nil, config: w, models: p.Engine.ServedModelName}
	return core.Spec{Name: w.Name, Hash: spec.Hash, Plain: plain, Static: p.Driver == "static", Device: len(spec.Place.GPUs) > 0, Lacks: b.plan.lacks[id]}, nil
}

// relief draws the further worker of a surge, where there is a place for it.
func (b *deployment) relief(p *configs.Pool, pool *core.Pool) error {
	if slices.ContainsFunc(p.Workers, func(w configs.Worker) bool { return w.Name == core.Relief }) {
		return fmt.Errorf("a worker is named %q, as is the one that strategy = \"surge\" starts for a while; give it another name", core.Relief)
	}
	pool.MinReady = p.Rotation.MinReady
	if _, placed := b.plan.places[workerid.Of(p.Name, core.Relief)]; !placed && (p.Driver == "process" || p.Driver == "docker") {
		pool.NoRelief = "no device is free"
		return nil
	}
	spec, err := b.worker(p, configs.Worker{Name: core.Relief})
	pool.Relief = &spec
	return err
}

// fingerprint names a Spec by all that makes a restart worth while. Cores are
// not of it: when they are divided anew, each worker gets its share at its
// next start.
func fingerprint(spec driver.Spec) (string, error) {
	spec.Hash, spec.Generation, spec.Grace, spec.Place.CPUs, spec.Place.NUMA = "", 0, 0, "", nil
	data, err := json.Marshal(spec) // maps come in the order of their keys
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}
