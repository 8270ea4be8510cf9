package guard

import (
	"slices"

	"roundhouse/configs"
	"roundhouse/configs/workerid"
	"roundhouse/supervisor/moby"
)

// ourLabels are those that only the supervisor may give: an image has labels too, which
// an engine adds to the container's.
var ourLabels = []string{
	moby.LabelInstance, moby.LabelPool, moby.LabelWorker, moby.LabelHash, moby.LabelGeneration, moby.LabelURL, moby.LabelImage,
}

// Policy is what may be asked of the engine.
type Policy struct {
	Instance string // the value of moby.LabelInstance
	pools    map[string]configs.Pool
	takeover []string // containers without our label that may be stopped and renamed
}

// PolicyOf reads the policy off a configuration: its docker pools are what may be
// run. What services of a Swarm take is not on the list.
func PolicyOf(cfg *configs.Config, instance string) *Policy {
	p := &Policy{Instance: instance, pools: map[string]configs.Pool{}}
	for _, pool := range cfg.Pools {
		if pool.Driver != "docker" {
			continue
		}
		p.pools[pool.Name] = pool
		for _, w := range pool.Workers {
			if w.Takeover != "" {
				p.takeover = append(p.takeover, w.Takeover)
			}
		}
	}
	return p
}

// worker is what one worker's container may be.
type worker struct {
	id     string   // pool/name
	names  []string // that the container may have
	pool   configs.Pool
	itself configs.Worker    // of a counted one, and of a surge's, only the name
	engine configs.Engine    // with what is the worker's own
	among  configs.Container // likewise
}

// worker finds whose container one with these labels would be.
func (p *Policy) worker(labels map[string]string) (worker, bool) {
	pool, known := p.pools[labels[moby.LabelPool]]
	of, name := workerid.Split(labels[moby.LabelWorker])
	if !known || of != pool.Name || name == "" {
		return worker{}, false
	}
	w := worker{id: labels[moby.LabelWorker], pool: pool, itself: configs.Worker{Name: name}}
	w.names = []string{"roundhouse-" + pool.Name + "-" + name}
	if i := slices.IndexFunc(pool.Workers, func(w configs.Worker) bool { return w.Name == name }); i >= 0 {
		w.itself = pool.Workers[i]
		w.names = append(w.names, name)
	}
	w.engine, w.among = pool.Of(w.itself)
	return w, true
}

// images are the images that may be pulled and asked for, by pool.
func (p *Policy) images() map[string]string {
	out := map[string]string{}
	for name, pool := range p.pools {
		out[name] = pool.Container.Image
	}
	return out
}
