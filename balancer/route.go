package balancer

import (
	"hash/fnv"
	"math"
	"sync"

	"roundhouse/balancer/extend"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/surface"
	"roundhouse/configs"
)

// route is a name that clients ask for, with the targets behind it.
type route struct {
	cfg configs.Route

	mu   sync.Mutex
	debt []float64 // of smooth weighted round robin, by target
}

// makeRoutes takes the routes of a set; one that has not changed keeps its
// turns.
func makeRoutes(cfgs []configs.Route, old *view) map[string]*route {
	m := map[string]*route{}
	for _, c := range cfgs {
		r := old.routes[c.Name]
		if r == nil || len(r.cfg.Targets) != len(c.Targets) {
			r = &route{cfg: c, debt: make([]float64, len(c.Targets))}
		} else {
			r = &route{cfg: c, debt: append([]float64(nil), r.debt...)}
		}
		m[c.Name] = r
		for _, a := range c.Aliases {
			m[a] = r
		}
	}
	return m
}

// choose picks a target among those that usable accepts: by the session where
// there is one, else in exact turns by weight. It returns -1 where none is
// usable.
func (r *route) choose(session string, usable func(model string) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	best, total := -1, 0.0
	top := math.Inf(-1)
	for i, t := range r.cfg.Targets {
		if t.Weight <= 0 || !usable(t.Model) {
			continue
		}
		w := float64(t.Weight)
		total += w
		if session != "" {
			if s := rendezvous(session, t.Model, w); s > top {
				best, top = i, s
			}
			continue
		}
		if r.debt[i] += w; best < 0 || r.debt[i] > r.debt[best] {
			best = i
		}
	}
	if best >= 0 && session == "" {
		r.debt[best] -= total
	}
	return best
}

// rendezvous is the score of a node for a session in a weighted rendezvous
// hash: every door computes the same, and a node that goes moves only its own
// sessions.
func rendezvous(session, node string, weight float64) float64 {
	h := fnv.New64a()
	h.Write([]byte(session))
	h.Write([]byte{0})
	h.Write([]byte(node))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	u := (float64(x>>11) + 0.5) / (1 << 53)
	return -weight / math.Log(u)
}

// find resolves the model that a client asked for into a target and a pool.
func (a *asked) find(d *Door, v *view, pass *extend.Pass, body []byte, sessionHeader string) *surface.Failure {
	name := a.peek.Model
	if pass != nil && pass.Route != "" {
		name = pass.Route
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
		return a.pickPool(d, v, name)
	}
	a.route = r
	a.session = r.sessionOf(a, body, sessionHeader)
	usable := func(model string) bool {
		t := v.models[model]
		return t != nil && t.alive(&d.fleet) != nil
	}
	if i := r.choose(a.session, usable); i >= 0 {
		a.model = r.cfg.Targets[i].Model
		a.target = v.models[a.model]
		return a.pickPool(d, v, name)
	}
	return a.fallback(d, v, r, name)
}

// fallback serves a route none of whose targets can.
func (a *asked) fallback(d *Door, v *view, r *route, name string) *surface.Failure {
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
		return a.pickPool(d, v, name)
	}
	// No target can serve now; one that is known may be parked at.
	for _, t := range r.cfg.Targets {
		if m := v.models[t.Model]; m != nil && t.Weight > 0 {
			a.model, a.target = t.Model, m
			return a.pickPool(d, v, name)
		}
	}
	return v.unknown(name)
}

// pickPool takes the first pool of the target that is alive.
func (a *asked) pickPool(d *Door, v *view, name string) *surface.Failure {
	if a.target == nil {
		return v.unknown(name)
	}
	if a.pool = a.target.alive(&d.fleet); a.pool == nil {
		a.pool = a.target.pools[0]
	}
	return nil
}

// alive returns the first pool of a target that can be asked, nil if none.
func (t *target) alive(f *fleet.Fleet) *fleet.Pool {
	for _, p := range t.pools {
		if p.Alive(f) {
			return p
		}
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
