package balancer

import (
	"cmp"
	"slices"
)

// spare is a request's body after its first event was relayed: it is kept for
// the case that the stream must go on at another worker, and goes first when
// the door's memory runs short.
type spare struct {
	body   []byte
	lent   *[]byte
	booked int64
}

// free gives a spare's memory back. Who calls it has taken the spare out of its
// exchange.
func (s *spare) free(d *Door) {
	d.memory.give(s.booked)
	giveBody(s.lent)
}

// putBy makes the body a spare, or gives it back at once where the stream could
// not go on with it anyway.
func (x *exchange) putBy() {
	s := &spare{x.body, x.lent, x.booked}
	x.body, x.lent, x.booked = nil, nil, 0
	if !x.mayResume() {
		s.free(x.d)
		return
	}
	x.d.spares.Add(s.booked)
	x.spare.Store(s)
}

// takeBack makes the spare the body again. It reports whether there is a body:
// none, where the memory was needed for something else.
func (x *exchange) takeBack() bool {
	if s := x.spare.Swap(nil); s != nil {
		x.d.spares.Add(-s.booked)
		x.body, x.lent, x.booked = s.body, s.lent, s.booked
	}
	return x.body != nil
}

// book charges bytes of a body to the door's memory. Where they do not fit,
// spares make room.
func (d *Door) book(n int64) bool {
	if d.memory.take(n) {
		return true
	}
	if d.spares.Load() < d.memory.over(n) {
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
		if s := x.spare.Load(); s != nil {
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
		if !c.x.spare.CompareAndSwap(c.s, nil) {
			continue // it has ended, or needs its body now
		}
		d.spares.Add(-c.s.booked)
		c.s.free(d)
		d.metrics.resumes.WithLabelValues(c.x.pool.name, "memory", "impossible").Inc()
		given++
		bytes += c.s.booked
	}
	d.log.Warn("memory for bodies runs short: streams gave up what they kept for being resumed", "streams", given, "bytes", bytes)
}
