package balancer

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"roundhouse/balancer/memory"
	"roundhouse/balancer/surface"
)

// inFlight is the requests in flight, by their ids.
type inFlight struct {
	mu   sync.Mutex
	byID map[string]*exchange
	none chan struct{} // closed when the last one has ended; nil: nobody waits for that
}

// enlist enters a request, under an id that no other one has.
func (l *inFlight) enlist(x *exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = map[string]*exchange{}
	}
	for l.byID[x.asked.id] != nil {
		x.asked.id = surface.RequestID(nil) // a client gave one id twice
	}
	l.byID[x.asked.id] = x
}

// delist takes a request out that has ended.
func (l *inFlight) delist(x *exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID[x.asked.id] == x {
		delete(l.byID, x.asked.id)
	}
	if len(l.byID) == 0 && l.none != nil {
		close(l.none)
		l.none = nil
	}
}

func (l *inFlight) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byID)
}

// list is the requests that match.
func (l *inFlight) list(match func(*exchange) bool) (list []*exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.byID {
		if match(x) {
			list = append(list, x.show())
		}
	}
	return list
}

// find is the request of that id; nil: there is none.
func (l *inFlight) find(id string) *exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x := l.byID[id]; x != nil {
		return x.show()
	}
	return nil
}

// wait waits until the last request has ended, or for that long.
func (l *inFlight) wait(most time.Duration) {
	l.mu.Lock()
	if len(l.byID) == 0 {
		l.mu.Unlock()
		return
	}
	if l.none == nil {
		l.none = make(chan struct{})
	}
	none := l.none
	l.mu.Unlock()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-none:
	case <-late.C:
	}
}

// book charges bytes of a body to the door's memory. Where they do not fit,
// spares make room.
func (d *common) book(n int64) bool {
	if d.memory.Take(n) {
		return true
	}
	if d.memory.Spares.Load() < d.memory.Over(n) {
		return false
	}
	d.relieve(n)
	return d.memory.Take(n)
}

// relieve gives spares up until n bytes fit, the longest first, so that as few
// streams as can be lose their way to another worker.
func (d *common) relieve(n int64) {
	type candidate struct {
		x *exchange
		s *memory.Spare
	}
	var all []candidate
	for _, x := range d.live.list(func(x *exchange) bool { return x.payload.Spare.Load() != nil }) {
		if s := x.payload.Spare.Load(); s != nil {
			all = append(all, candidate{x, s})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(b.s.Booked, a.s.Booked) })
	given, bytes := 0, int64(0)
	for _, c := range all {
		if d.memory.Over(n) <= 0 {
			break
		}
		if !c.x.payload.Steal(c.s, &d.memory) {
			continue
		}
		d.metrics.Resumed(c.x.asked.pool.Name, "memory", "impossible")
		given++
		bytes += c.s.Booked
	}
	d.log.Warn("memory for bodies runs short: streams gave up what they kept for being resumed", "streams", given, "bytes", bytes)
}
