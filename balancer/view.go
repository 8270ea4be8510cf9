package balancer

import (
	"bytes"
	"crypto/tls"
	"net/netip"
	"slices"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/extend"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/otlp"
	"roundhouse/balancer/surface"
	"roundhouse/configs"
)

// view is the worker set in force with all that is derived of it. It is
// replaced whole and never changed.
type view struct {
	set     control.WorkerSet
	limits  *limits
	pools   []*fleet.Pool
	byName  map[string]*fleet.Pool
	workers []*fleet.Worker
	routes  map[string]*route  // by name and alias
	models  map[string]*target // by served name
	keys    *keyring.Ring
	tls     *tls.Config    // nil: plain HTTP
	ext     *extend.Set    // nil: no plugins
	traces  *otlp.Exporter // nil: none are sent
	batches *batches
	trusted trust
}

// mapModels finds which pools serve which model: by their configuration, else
// by what their workers say.
func mapModels(v *view) map[string]*target {
	m := map[string]*target{}
	put := func(name string, p *fleet.Pool) {
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
		for _, name := range p.Models() {
			put(name, p)
		}
	}
	return m
}

// unknown refuses a model that no pool is known to serve: for good, unless some
// pool has yet to say what it serves.
func (v *view) unknown(name string) *surface.Failure {
	if p := v.unsaid(); p != nil {
		return surface.NotSaid(p.Name)
	}
	return surface.UnknownModel(name)
}

// unsaid returns the first pool of which neither the configuration nor a worker
// has said which models it serves, nil if all have.
func (v *view) unsaid() *fleet.Pool {
	for _, p := range v.pools {
		if !p.Says() {
			return p
		}
	}
	return nil
}

// proxies are the addresses that what a proxy says is believed from.
type proxies []netip.Prefix

// client is the address that a request comes from: its connection's, or, if that
// is a trusted proxy's, the last in X-Forwarded-For that is none of those. What
// stands before it may be the client's own invention.
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

// limits is what of the configuration a guard needs.
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
