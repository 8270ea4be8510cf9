package balancer

import (
	"slices"

	"roundhouse/balancer/extend"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/surface"
)

// find resolves the model that a client asked for into a target and a pool.
func (a *asked) find(f *fleet.Fleet, v *view, pass *extend.Pass, body []byte, sessionHeader string) *surface.Failure {
	name := a.peek.Model
	if pass != nil && pass.Route != "" {
		name = pass.Route
	}
	if a.within != nil {
		a.findWithin(f, v, name, body, sessionHeader)
		return nil
	}
	if name == "" {
		if len(v.models) != 1 {
			if p := v.unsaid(); p != nil {
				return surface.NotSaid(p.Name)
			}
			return surface.BadRequest("model", "the field \"model\" is missing")
		}
		for only := range v.models {
			name = only
		}
	}
	r := v.routes[name]
	if r == nil {
		a.target = v.models[name]
		a.model = name
		return a.pickPool(f, v, name)
	}
	a.route = r
	a.session = r.sessionOf(a, body, sessionHeader)
	usable := func(model string) bool {
		t := v.models[model]
		return t != nil && t.alive(f, a.key) != nil
	}
	if i := r.choose(a.session, usable); i >= 0 {
		a.model = r.cfg.Targets[i].Model
		a.target = v.models[a.model]
		return a.pickPool(f, v, name)
	}
	return a.fallback(f, v, r, name)
}

// findWithin resolves a model in a pool that was chosen before. Its workers are the
// judges of a name that is neither a route nor theirs: an adapter may have been loaded
// that nobody was told of.
func (a *asked) findWithin(f *fleet.Fleet, v *view, name string, body []byte, sessionHeader string) {
	a.pool, a.model = a.within, name
	if r := v.routes[name]; r != nil {
		a.route = r
		a.session = r.sessionOf(a, body, sessionHeader)
		there := func(model string) bool {
			t := v.models[model]
			return t != nil && slices.Contains(t.pools, a.within) && a.within.Alive(f)
		}
		if i := r.choose(a.session, there); i >= 0 {
			a.model = r.cfg.Targets[i].Model
		}
	}
	if known := a.pool.Models(); a.model == "" && len(known) > 0 {
		a.model = known[0]
	}
	a.target = v.models[a.model]
}

// fallback serves a route none of whose targets can.
func (a *asked) fallback(f *fleet.Fleet, v *view, r *route, name string) *surface.Failure {
	if p := v.byName[r.cfg.Fallback]; p != nil {
		for model, t := range v.models {
			for _, of := range t.pools {
				if of == p {
					a.model, a.target, a.pool = model, t, p
					return nil
				}
			}
		}
	}
	if t := v.models[r.cfg.Fallback]; t != nil {
		a.model, a.target = r.cfg.Fallback, t
		return a.pickPool(f, v, name)
	}
	// No target can serve now; one that is known may be parked at.
	for _, t := range r.cfg.Targets {
		if m := v.models[t.Model]; m != nil && t.Weight > 0 {
			a.model, a.target = t.Model, m
			return a.pickPool(f, v, name)
		}
	}
	return v.unknown(name)
}

// pickPool takes the first pool of the target that is alive.
func (a *asked) pickPool(f *fleet.Fleet, v *view, name string) *surface.Failure {
	if a.target == nil {
		return v.unknown(name)
	}
	if a.pool = a.target.alive(f, a.key); a.pool == nil {
		a.pool = a.target.first(a.key)
	}
	return nil
}

// sessionOf is what makes the requests of one session stick together.
func (r *route) sessionOf(a *asked, body []byte, header string) string {
	switch r.cfg.Sticky {
	case "session":
		return header
	case "user":
		return a.peek.User
	case "prefix":
		if p := a.peek.Prompt; p.Set() {
			text := p.Of(body)
			return string(text[:min(len(text), 1024)])
		}
	}
	return ""
}
