package balancer

import (
	"context"
	"runtime/debug"
	collector "runtime/metrics"
	"time"

	"roundhouse/balancer/fleet"
)

// How a process collects its memory. A door holds little and makes much
// garbage: at Go's default it would collect some twenty times a second under
// load, which took a fifteenth of its processor and most of its slowest
// requests' time. So garbage may grow to a floor, but only while it grows fast:
// a door with many silent streams keeps nothing for them but what they need.
const (
	paceStep  = 250 * time.Millisecond
	paceFloor = 48 << 20 // bytes of garbage between two collections of a busy door
	paceBusy  = 6 << 20  // bytes allocated in one step, and no fewer than are live, make it busy
	paceUp    = 4        // steps until it counts as busy
	paceDown  = 20       // steps until it no longer does
	paceMost  = 3200     // percent
)

// pacer decides how far garbage may grow.
type pacer struct {
	allocated uint64
	busy      int // steps that it has been busy, or is still to count as busy
	percent   int
}

// look is told what was allocated so far and what was live at the last
// collection. It returns the percentage by which the heap may grow, and whether
// what is free is to be given back, since the door has become calm.
func (p *pacer) look(allocated, live uint64) (percent int, calmed bool) {
	grown := allocated - p.allocated
	p.allocated = allocated
	was := p.busy
	calm := grown < max(paceBusy, live) // what is allocated to stay is soon among the live
	switch {
	case calm && p.busy > paceUp:
		p.busy--
	case calm:
		p.busy = 0
	case p.busy+1 < paceUp:
		p.busy++
	default:
		p.busy = paceUp + paceDown
	}
	if p.busy < paceUp {
		p.percent = 100
		return p.percent, was >= paceUp
	}
	percent = int(min(paceMost, max(100, 100*paceFloor/max(live, 1<<20))))
	// Each change stops the world for a moment.
	if d := percent - p.percent; d*4 > p.percent || d*4 < -p.percent {
		p.percent = percent
	}
	return p.percent, false
}

// PaceCollections sets how often this process collects its memory, by what it
// is doing, until ctx ends. A process calls it once, unless its user has set
// GOGC.
func PaceCollections(ctx context.Context) {
	samples := []collector.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	p := pacer{percent: 100}
	set := 100
	defer func() {
		if set != 100 {
			debug.SetGCPercent(100)
		}
	}()
	for {
		if fleet.Sleep(ctx, paceStep); ctx.Err() != nil {
			return
		}
		collector.Read(samples)
		percent, calmed := p.look(samples[0].Value.Uint64(), samples[1].Value.Uint64())
		if percent != set {
			set = percent
			debug.SetGCPercent(set)
		}
		if calmed {
			debug.FreeOSMemory()
		}
	}
}
