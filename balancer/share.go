package balancer

import "slices"

// shareOut tells the ledger which workers other doors take first when requests
// come to all doors at once. Doors that hear of each other come to the same
// shares, each by itself, by the names of all doors and all workers.
func (d *Door) shareOut(v *view) {
	p := &d.peers
	p.sharing.Lock()
	defer p.sharing.Unlock()
	doors := p.doors(d.id)
	rank := slices.Index(doors, d.id)
	for _, pool := range v.pools {
		var ids []string
		for _, w := range *pool.Workers.Load() {
			ids = append(ids, w.ID)
		}
		slices.Sort(ids)
		d.ledger.Share(&pool.Group, func(id string) bool {
			at, _ := slices.BinarySearch(ids, id)
			return !takesFirst(at, len(ids), rank, len(doors))
		})
	}
}

// takesFirst reports whether a worker is in a door's share. Every worker is in
// one where there are enough of them, and every door has one.
func takesFirst(worker, workers, door, doors int) bool {
	if workers >= doors {
		return worker*doors/workers == door
	}
	return door*workers/doors == worker
}

// doors returns the names of all doors that take requests, this one's included,
// in order.
func (p *peers) doors(own string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := []string{own}
	for id, h := range p.heard {
		if !h.totals.Gone && !h.totals.Leaving {
			names = append(names, id)
		}
	}
	slices.Sort(names)
	return names
}
