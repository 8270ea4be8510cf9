package balancer

import (
	"cmp"
	"slices"

	"roundhouse/balancer/memory"
)

// book charges bytes of a body to the door's memory. Where they do not fit,
// spares make room.
func (d *Door) book(n int64) bool {
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
func (d *Door) relieve(n int64) {
	type candidate struct {
		x *exchange
		s *memory.Spare
	}
	var all []candidate
	d.liveMu.Lock()
	for _, x := range d.live {
		if s := x.payload.Spare.Load(); s != nil {
			all = append(all, candidate{x.show(), s})
		}
	}
	d.liveMu.Unlock()
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
