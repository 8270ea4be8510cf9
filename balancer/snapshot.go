package balancer

import (
	"bytes"
	"crypto/tls"
	"net/netip"
	"slices"
	"time"

	"fmt"
	"hash/fnv"
	"math"
	"sync"

	"roundhouse/balancer/canary"
	"roundhouse/balancer/control"
	"roundhouse/balancer/extend"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/otlp"
	"roundhouse/balancer/surface"
	"roundhouse/configs"
)

// snapshot is the worker set in force with all that is derived of it. It is
// replaced whole and never changed.
type snapshot struct {
	set     control.WorkerSet
	limits  *limits
	pools   []*fleet.Pool
	byName  map[string]*fleet.Pool
	workers []*fleet.Worker
	routes  map[string]*route   // by name and alias
	models  map[string]*serving // by served name
	keys    *keyring.Ring
	tls     *tls.Config                                      // nil: plain HTTP
	ext     *extend.Set                                      // nil: no plugins
	traces  *otlp.Exporter                                   // nil: none are sent
	lines   func(authorization []byte) (key string, ok bool) // reports whether it is a line of a batch that shows it, and whose; nil: there are none
	trusted trust
}

// mapModels finds which pools serve which model: by their configuration, else
// by their workers' model lists.
func mapModels(v *snapshot) map[string]*serving {
	m := map[string]*serving{}
	put := func(name string, p *fleet.Pool) {
		t := m[name]
		if t == nil {
			t = &serving{model: name}
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
		for _, name := range p.Models() {
			put(name, p)
		}
		for _, name := range v.set.Pools[i].Adapters {
			put(name, p)
		}
	}
	return m
}

// unknown refuses a model that no pool is known to serve: for good, unless some
// pool has yet to report its models.
func (v *snapshot) unknown(name string) *surface.Failure {
	if p := v.unsaid(); p != nil {
		return surface.NotSaid(p.Name)
	}
	return surface.UnknownModel(name)
}

// unsaid returns the first pool of which neither the configuration nor a worker
// has said which models it serves, nil if all have.
func (v *snapshot) unsaid() *fleet.Pool {
	for _, p := range v.pools {
		if !p.Says() {
			return p
		}
	}
	return nil
}

// proxies are the addresses whose forwarded headers are believed.
type proxies []netip.Prefix

// client is the address that a request comes from: its connection's, or, if that
// is a trusted proxy's, the last in X-Forwarded-For that is no proxy's. Earlier
// entries may be the client's own invention.
func (trusted proxies) client(peer netip.Addr, forwarded []byte) netip.Addr {
	for at := len(forwarded); at >= 0 && trusted.include(peer); {
		from := bytes.LastIndexByte(forwarded[:at], ',') + 1
		next, ok := forwardedAddr(string(bytes.TrimSpace(forwarded[from:at])))
		if !ok {
			break // unknown, or hidden: the proxy that says so is the last address known
		}
		peer, at = next, from-1
	}
	return peer
}

// forwardedAddr reads an address, with a port or without.
func forwardedAddr(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap(), true
	}
	if p, err := netip.ParseAddrPort(s); err == nil {
		return p.Addr().Unmap(), true
	}
	if n := len(s); n > 2 && s[0] == '[' && s[n-1] == ']' {
		a, err := netip.ParseAddr(s[1 : n-1])
		return a.Unmap(), err == nil
	}
	return netip.Addr{}, false
}

// include reports whether an address is a trusted proxy's.
func (trusted proxies) include(a netip.Addr) bool {
	return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) })
}

// trust is the proxies whose X-Forwarded-For is believed, and those whose connections
// may begin with a PROXY header.
type trust struct {
	proxies
	headers proxies
}

// trustOf reads the addresses of trusted proxies.
func trustOf(cfg *configs.Door) (t trust, err error) {
	for list, to := range map[*[]string]*proxies{&cfg.TrustedProxies: &t.proxies, &cfg.ProxyProtocol: &t.headers} {
		for _, s := range *list {
			p, err := configs.ParsePrefix(s)
			if err != nil {
				return t, err
			}
			*to = append(*to, p)
		}
	}
	return t, nil
}

// limits are the parts of the configuration that a guard needs.
type limits struct {
	body       int64
	headers    int
	headerRead time.Duration
	bodyIdle   time.Duration
	uploadRate int64 // bytes a second of a body, at least
	keepAlive  time.Duration
	http2      bool
	streams    int // of HTTP/2, on one connection at once
}

// limitsOf are the guard's limits by a filled configuration.
func limitsOf(door *configs.Door) *limits {
	c := &door.Limits
	return &limits{
		http2: door.HTTP2, streams: c.Streams, body: int64(c.Body), headers: int(c.Headers), uploadRate: int64(c.UploadRate), keepAlive: 2 * time.Minute,
		headerRead: time.Duration(c.HeaderRead), bodyIdle: time.Duration(c.BodyIdle),
	}
}

// admit checks the key where keys are set.
func (v *snapshot) admit(authorization, xAPIKey []byte) (*keyring.Key, *surface.Failure) {
	if !v.keys.Asked {
		return nil, nil
	}
	k := v.keys.Find(string(authorization), string(xAPIKey))
	if k == nil && v.lines != nil {
		if name, ok := v.lines(authorization); ok {
			k = v.keys.Configured(name)
		}
	}
	if k == nil {
		return nil, &surface.Failure{Status: 401, Type: "authentication_error", Code: "invalid_api_key", Reason: "auth",
			Message: "a valid API key is needed: Authorization: Bearer KEY"}
	}
	if k.Expired(time.Now()) {
		return nil, &surface.Failure{Status: 401, Type: "authentication_error", Code: "invalid_api_key", Reason: "auth",
			Message: fmt.Sprintf("key %q expired at %s", k.Name, k.Cfg.Expires)}
	}
	return k, nil
}

// route is a name that clients ask for, with the targets behind it.
type route struct {
	cfg   configs.Route
	trial *canary.Trial // nil: it has no canary

	mu   sync.Mutex
	debt []float64 // of smooth weighted round robin, by target
}

// makeRoutes takes the routes of a set; an unchanged route keeps its
// turns.
func makeRoutes(cfgs []configs.Route, old *snapshot) map[string]*route {
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

// alive returns the first pool that can be asked for a target and that a key may use, nil
// if there is none.
func (t *serving) alive(f *fleet.Fleet, k *keyring.Key) *fleet.Pool {
	for _, p := range t.pools {
		if k.AllowsPool(p.Name) && p.Serves(f, t.model) {
			return p
		}
	}
	return nil
}

// first returns the first pool that a key may use, or the first at all.
func (t *serving) first(k *keyring.Key) *fleet.Pool {
	for _, p := range t.pools {
		if k.AllowsPool(p.Name) {
			return p
		}
	}
	return t.pools[0]
}

// serving is a model and the pools that serve it.
type serving struct {
	model string
	pools []*fleet.Pool
}
