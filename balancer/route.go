package balancer

import (
	"hash/fnv"
	"math"
	"sync"

	"roundhouse/balancer/fleet"
	"roundhouse/balancer/keyring"
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

// alive returns the first pool of a target that can be asked and that a key may use, nil
// if there is none.
func (t *target) alive(f *fleet.Fleet, k *keyring.Key) *fleet.Pool {
	for _, p := range t.pools {
		if k.AllowsPool(p.Name) && p.Alive(f) {
			return p
		}
	}
	return nil
}

// first returns the first pool that a key may use, or the first at all.
func (t *target) first(k *keyring.Key) *fleet.Pool {
	for _, p := range t.pools {
		if k.AllowsPool(p.Name) {
			return p
		}
	}
	return t.pools[0]
}

// target is a model and the pools that serve it.
type target struct {
	model string
	pools []*fleet.Pool
}
