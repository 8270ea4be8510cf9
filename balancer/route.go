package balancer

import (
	"hash/fnv"
	"math"
	"sync"

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
func (x *exchange) find(v *view, sessionHeader string) *failure {
	name := x.asked.peek.Model
	if x.pass != nil && x.pass.Route != "" {
		name = x.pass.Route
	}
	if name == "" {
		if len(v.models) != 1 {
			if p := v.unsaid(); p != nil {
				return notSaid(p.name)
			}
			return badRequest("model", "the field \"model\" is missing")
		}
		for only := range v.models {
			name = only
		}
	}
	r := v.routes[name]
	if r == nil {
		x.asked.target = v.models[name]
		x.asked.model = name
		return x.pickPool(v, name)
	}
	x.asked.route = r
	x.asked.session = r.sessionOf(x, sessionHeader)
	usable := func(model string) bool {
		t := v.models[model]
		return t != nil && t.alive(x.d) != nil
	}
	if i := r.choose(x.asked.session, usable); i >= 0 {
		x.asked.model = r.cfg.Targets[i].Model
		x.asked.target = v.models[x.asked.model]
		return x.pickPool(v, name)
	}
	return x.fallback(v, r, name)
}

// fallback serves a route none of whose targets can.
func (x *exchange) fallback(v *view, r *route, name string) *failure {
	if p := v.byName[r.cfg.Fallback]; p != nil {
		for model, t := range v.models {
			for _, of := range t.pools {
				if of == p {
					x.asked.model, x.asked.target, x.asked.pool = model, t, p
					return nil
				}
			}
		}
	}
	if t := v.models[r.cfg.Fallback]; t != nil {
		x.asked.model, x.asked.target = r.cfg.Fallback, t
		return x.pickPool(v, name)
	}
	// No target can serve now; one that is known may be parked at.
	for _, t := range r.cfg.Targets {
		if m := v.models[t.Model]; m != nil && t.Weight > 0 {
			x.asked.model, x.asked.target = t.Model, m
			return x.pickPool(v, name)
		}
	}
	return v.unknown(name)
}

// pickPool takes the first pool of the target that is alive.
func (x *exchange) pickPool(v *view, name string) *failure {
	if x.asked.target == nil {
		return v.unknown(name)
	}
	if x.asked.pool = x.asked.target.alive(x.d); x.asked.pool == nil {
		x.asked.pool = x.asked.target.pools[0]
	}
	return nil
}

// alive returns the first pool of a target that can be asked, nil if none.
func (t *target) alive(d *Door) *pool {
	for _, p := range t.pools {
		if p.alive(d) {
			return p
		}
	}
	return nil
}

// sessionOf is what makes the requests of one session stick together.
func (r *route) sessionOf(x *exchange, header string) string {
	switch r.cfg.Sticky {
	case "session":
		return header
	case "user":
		return x.asked.peek.User
	case "prefix":
		if p := x.asked.peek.Prompt; p.Set() {
			text := p.Of(x.payload.body)
			return string(text[:min(len(text), 1024)])
		}
	}
	return ""
}
