package fleet

import (
	"slices"

	"roundhouse/balancer/ledger"
)

// partial is what some workers of a pool serve and others may not: adapters, which are
// loaded while a worker runs.
type partial struct {
	adapters []string        // by configuration
	some     map[string]bool // what a worker lists and another does not
}

// compare notes which of the names that workers list are not listed by all of them.
func (p *Pool) compare(names []string) {
	next := partial{adapters: p.Adapters()}
	for _, w := range *p.Workers.Load() {
		list := w.ModelList()
		if len(list) == 0 {
			continue // it says nothing yet
		}
		for _, m := range names {
			if slices.Contains(list, m) {
				continue
			}
			if next.some == nil {
				next.some = map[string]bool{}
			}
			next.some[m] = true
		}
	}
	p.partial.Store(&next)
}

// setAdapters takes the adapters of a configuration.
func (p *Pool) setAdapters(names []string) {
	next := partial{adapters: names}
	if was := p.partial.Load(); was != nil {
		next.some = was.some
	}
	p.partial.Store(&next)
}

// Adapters are the names that are being loaded into the pool's workers by configuration.
func (p *Pool) Adapters() []string {
	if now := p.partial.Load(); now != nil {
		return now.adapters
	}
	return nil
}

// Only reports of a worker whether it has a model, as it says at that moment; nil where
// all have it.
func (p *Pool) Only(model string) func(*ledger.Worker) bool {
	now := p.partial.Load()
	if now == nil || now.some == nil && now.adapters == nil {
		return nil
	}
	loaded := slices.Contains(now.adapters, model)
	if !loaded && !now.some[model] {
		return nil
	}
	return func(w *ledger.Worker) bool {
		list := w.Of.(*Worker).ModelList()
		if len(list) == 0 {
			return !loaded // a model is there from the start
		}
		return slices.Contains(list, model)
	}
}

// Serves reports whether a worker of the pool can be asked for a model.
func (p *Pool) Serves(f *Fleet, model string) bool {
	only := p.Only(model)
	if only == nil {
		return p.Alive(f)
	}
	now := f.now()
	return slices.ContainsFunc(*p.Workers.Load(), func(w *Worker) bool { return only(w.Acct) && f.ledger.Usable(w.Acct, now) })
}

// lacks reports whether the worker does not list an adapter that is being loaded.
func (w *Worker) lacks() bool {
	list := w.ModelList()
	return slices.ContainsFunc(w.Pool.Adapters(), func(name string) bool { return !slices.Contains(list, name) })
}
