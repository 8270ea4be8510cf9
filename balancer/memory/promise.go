package memory

import (
	"net/netip"
	"sync"
)

// A body for fasthttp is booked whole before it comes. The bytes that are booked
// and have not come are promises, of which a client, by the address that the log of
// requests knows, may make no more than a part of the door's memory: else a few that
// send slowly would keep everybody's bodies out. Short bodies are no promises worth
// counting.
const (
	PromisePart = 16
	LeastBig    = 64 << 10
)

// Promises are the open promises, by address.
type Promises struct {
	mu sync.Mutex
	of map[netip.Addr]int64
}

// Take notes a promise of n bytes, unless it would exceed most. One body of
// whatever length is always allowed.
func (p *Promises) Take(from netip.Addr, n, most int64) bool {
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

// Keep takes n bytes out: they have come, or will never.
func (p *Promises) Keep(from netip.Addr, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[from] -= n; p.of[from] <= 0 {
		delete(p.of, from)
	}
}
