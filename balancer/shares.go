package balancer

import (
	"slices"

	"roundhouse/balancer/control"
	"roundhouse/balancer/fleet"
	"roundhouse/configs/workerid"
)

// alone is the fleet of doors that no supervisor speaks for: those that name each other
// list the same workers by the same names.
const alone = "alone"

// fleet tells whose workers the door serves; empty: it knows of none yet.
func (v *snapshot) fleet() string {
	switch {
	case v.set.Schema == 0:
		return ""
	case v.set.Holder == "":
		return alone
	}
	return v.set.Holder
}

// sameFleet reports whether two doors may serve the same workers. A door that does not
// say is of an earlier version, or knows of none yet.
func sameFleet(a, b string) bool { return a == "" || b == "" || a == b }

// sameProcess reports whether another door speaks of a worker's present process.
func sameProcess(t *control.WorkerTotal, at fleet.Instance) bool {
	return t.Generation == at.Generation && (t.Identity == at.Identity || t.Identity == "" || at.Identity == "")
}

// sharedWith lists the pools of which another door serves workers too.
func (v *snapshot) sharedWith(t *control.Totals) (pools []string) {
	if !sameFleet(t.Fleet, v.fleet()) {
		return nil
	}
	theirs := make(map[string]*control.WorkerTotal, len(t.Workers))
	for i := range t.Workers {
		theirs[t.Workers[i].ID] = &t.Workers[i]
	}
	for _, w := range v.workers {
		pool := workerid.Pool(w.ID)
		if one := theirs[w.ID]; one != nil && !slices.Contains(pools, pool) && sameProcess(one, w.Instance()) {
			pools = append(pools, pool)
		}
	}
	return pools
}

// shareOut tells the ledger which workers other doors take first when requests
// come to all doors at once. Doors that hear of each other come to the same
// shares, each by itself, by the names of all doors of a pool and all its workers.
func (p *peers) shareOut(v *snapshot) {
	p.sharing.Lock()
	defer p.sharing.Unlock()
	p.mu.Lock()
	for _, h := range p.heard {
		h.serves = v.sharedWith(&h.totals)
	}
	p.mu.Unlock()
	for _, pool := range v.pools {
		doors := p.doors(p.d.id, pool.Name)
		rank := slices.Index(doors, p.d.id)
		var ids []string
		for _, w := range *pool.Workers.Load() {
			ids = append(ids, w.ID)
		}
		slices.Sort(ids)
		p.d.ledger.Share(&pool.Group, func(id string) bool {
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

// doors returns the names of all doors that take a pool's requests, this one's
// included, in order.
func (p *peers) doors(own, pool string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := []string{own}
	for id, h := range p.heard {
		if !h.totals.Gone && !h.totals.Leaving && slices.Contains(h.serves, pool) {
			names = append(names, id)
		}
	}
	slices.Sort(names)
	return names
}
