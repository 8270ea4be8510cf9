package balancer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/worker/api"
)

// How doors exchange their totals.
const (
	tellEvery  = 100 * time.Millisecond
	tellSoon   = 5 * time.Millisecond   // after a choice, at the earliest
	tellEach   = 100 * time.Microsecond // and this for each worker and each door to be told: a twentieth of a core
	lookEvery  = time.Second            // for doors that have come or gone
	tellWithin = time.Second            // one door may take so long to listen
	selfEvery  = time.Minute            // for whether an address is this door's own still
	silentFor  = 2 * time.Second        // a door that says nothing for so long is not counted any more
	lingerFor  = 15 * time.Second       // idle clients have so long to come to the next door by themselves
)

// peers is the other doors: what they say, and the ways to them. Doors of one
// supervisor find each other by their private sockets, which lie in one folder;
// doors on other hosts by the configuration's list of admin APIs (ways.go).
type peers struct {
	d      *common
	ctx    context.Context // the door's
	wg     *sync.WaitGroup // of its goroutines
	socket string          // its own; empty: it has none

	mu      sync.Mutex
	heard   map[string]*heard // by door
	ways    map[string]*way   // by address
	serial  uint64
	looked  time.Time
	seeking bool      // names of other hosts are being resolved
	budget  time.Time // when what budgets have used was last told

	sharing  sync.Mutex    // held while workers are shared out
	listened atomic.Bool   // some door is to be told of choices
	changed  chan struct{} // holds one: a choice was made since the last tell
}

// change says that a choice was made, which other doors want to know of soon.
func (p *peers) change() {
	if !p.listened.Load() {
		return
	}
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// heard is what one door has said last.
type heard struct {
	totals control.Totals
	at     time.Time
	serves []string // the pools of which it has workers too
}

// liveOf counts a key's requests at all other doors.
func (p *peers) liveOf(key string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.heard {
		if h.totals.Gone {
			continue
		}
		for _, u := range h.totals.Keys {
			if u.Name == key {
				n += max(u.Live, 0)
			}
		}
	}
	return n
}

// resident is what a worker holds of the other doors that this one hears of.
func (p *peers) resident(doors map[string]api.DoorStatus) (tokens int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range doors {
		if h := p.heard[id]; h != nil && !h.totals.Gone {
			tokens += max(s.ResidentTokens, 0)
		}
	}
	return tokens
}

// successor reports whether another door takes the connections from now on.
func (p *peers) successor() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.heard {
		if !h.totals.Leaving && !h.totals.Gone && time.Since(h.at) < silentFor {
			return true
		}
	}
	return false
}

// count is how many other doors there are.
func (p *peers) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.heard)
}
