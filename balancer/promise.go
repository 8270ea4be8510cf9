package balancer

import (
	"net"
	"net/netip"
	"sync"
)

// A body for fasthttp is booked whole before it comes. The bytes that are booked
// and have not come are promises, of which a client, by its address, may make no
// more than a part of the door's memory: else a few that send slowly would keep
// everybody's bodies out. Short bodies are no promises worth counting.
const (
	promisePart = 16
	leastBig    = 64 << 10
)

// promises are the open promises, by address.
type promises struct {
	mu sync.Mutex
	of map[netip.Addr]int64
}

// take notes a promise of n bytes, unless it would exceed most. One body of
// whatever length is always allowed.
func (p *promises) take(from netip.Addr, n, most int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if was := p.of[from]; was > 0 && was+n > most {
		return false
	}
	if p.of == nil {
		p.of = map[netip.Addr]int64{}
	}
	p.of[from] += n
	return true
}

// keep takes n bytes out: they have come, or will never.
func (p *promises) keep(from netip.Addr, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[from] -= n; p.of[from] <= 0 {
		delete(p.of, from)
	}
}

// promise notes that a body is booked which has still to come.
func (g *guard) promise(n int64) bool {
	if n < leastBig {
		return true
	}
	if !g.d.promises.take(g.peer(), n, g.d.memory.limit.Load()/promisePart) {
		return false
	}
	g.promised = n
	return true
}

// kept notes that n bytes of a promised body have come.
func (g *guard) kept(n int64) {
	if n = min(n, g.promised); n > 0 {
		g.promised -= n
		g.d.promises.keep(g.peer(), n)
	}
}

// peer is the client's address, as its connection shows it.
func (g *guard) peer() netip.Addr {
	if a, ok := g.Conn.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
