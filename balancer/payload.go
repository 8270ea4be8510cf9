package balancer

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// payload is a request's body with the memory that it lies in. Once a stream has
// begun it is a spare, which other goroutines may give up.
type payload struct {
	body   []byte
	lent   *[]byte // of buffers, where body lies in one
	booked int64   // memory booked for body
	kept   int64   // and for what the answer keeps beside it
	spare  atomic.Pointer[spare]
}

// spare is a request's body after its first event was relayed: it is kept for
// the case that the stream must go on at another worker, and goes first when
// the door's memory runs short.
type spare struct {
	body   []byte
	lent   *[]byte
	booked int64
}

// free gives a spare's memory back. Who calls it has taken the spare out of its
// payload.
func (s *spare) free(m *memory) {
	m.give(s.booked)
	giveBody(s.lent)
}

// keepSpare makes the body a spare.
func (p *payload) keepSpare(m *memory) {
	s := &spare{p.body, p.lent, p.booked}
	p.body, p.lent, p.booked = nil, nil, 0
	m.spares.Add(s.booked)
	p.spare.Store(s)
}

// takeBack makes the spare the body again. It reports whether there is a body:
// none, where the memory was needed for something else.
func (p *payload) takeBack(m *memory) bool {
	if s := p.spare.Swap(nil); s != nil {
		m.spares.Add(-s.booked)
		p.body, p.lent, p.booked = s.body, s.lent, s.booked
	}
	return p.body != nil
}

// steal frees the spare that s is, unless the exchange has ended or needs its
// body by now. It reports whether it did.
func (p *payload) steal(s *spare, m *memory) bool {
	if !p.spare.CompareAndSwap(s, nil) {
		return false
	}
	m.spares.Add(-s.booked)
	s.free(m)
	return true
}

// give returns all memory.
func (p *payload) give(m *memory) {
	p.takeBack(m)
	m.give(p.booked + p.kept)
	giveBody(p.lent)
	p.body, p.lent, p.booked, p.kept = nil, nil, 0, 0
}

// lost reports whether the body is there no more, neither as it came nor as a spare.
func (p *payload) lost() bool { return p.body == nil && p.spare.Load() == nil }

// memory is what all bodies together take, long answers that are held, and what streams
// keep for going on elsewhere. Spares make room for new bodies.
type memory struct {
	budget
	spares atomic.Int64 // bytes that spares hold
}

// book charges bytes of a body to the door's memory. Where they do not fit,
// spares make room.
func (d *Door) book(n int64) bool {
	if d.memory.take(n) {
		return true
	}
	if d.memory.spares.Load() < d.memory.over(n) {
		return false
	}
	d.relieve(n)
	return d.memory.take(n)
}

// relieve gives spares up until n bytes fit, the longest first, so that as few
// streams as can be lose their way to another worker.
func (d *Door) relieve(n int64) {
	type candidate struct {
		x *exchange
		s *spare
	}
	var all []candidate
	d.liveMu.Lock()
	for _, x := range d.live {
		if s := x.payload.spare.Load(); s != nil {
			all = append(all, candidate{x.show(), s})
		}
	}
	d.liveMu.Unlock()
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(b.s.booked, a.s.booked) })
	given, bytes := 0, int64(0)
	for _, c := range all {
		if d.memory.over(n) <= 0 {
			break
		}
		if !c.x.payload.steal(c.s, &d.memory) {
			continue
		}
		d.metrics.resumes.WithLabelValues(c.x.asked.pool.name, "memory", "impossible").Inc()
		given++
		bytes += c.s.booked
	}
	d.log.Warn("memory for bodies runs short: streams gave up what they kept for being resumed", "streams", given, "bytes", bytes)
}
