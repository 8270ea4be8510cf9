package balancer

import (
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"cmp"
	"slices"
	"sync"

	"roundhouse/balancer/canary"
	"roundhouse/balancer/conn"
	"roundhouse/balancer/decision"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/http2"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/memory"
	"roundhouse/balancer/metrics"
	"roundhouse/balancer/requestlog"
	"roundhouse/balancer/stored"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/usage"
)

// common is what connections and requests have of their door.
type common struct {
	id     string
	log    *slog.Logger
	epoch  time.Time // the door's clock begins here
	access io.Writer // nil: no line is written for a request

	snapshot atomic.Pointer[snapshot] // in force
	fleet    fleet.Fleet
	ledger   *ledger.Ledger
	metrics  *metrics.Metrics
	watcher  *conn.Watcher

	memory    memory.Bound
	promises  memory.Promises // of bodies that have still to come
	conns     conns
	live      inFlight
	why       decision.Ring
	past      recentRequests
	lobby     fleet.Tally // of requests that came to no pool
	responses stored.Responses
	usage     *usage.Book
	canaries  *canary.Book
	requests  requestlog.Log
	faults    faults

	draining atomic.Bool
	seeking  atomic.Bool                       // workers that are to be found are not known yet
	moves    atomic.Pointer[func(*guard) bool] // to the next door, while this one drains and another takes its idle connections

	step        time.Duration
	writeWithin time.Duration // one write to a client

	http2   *http2.Server             // serves those who speak it
	serve   func(*guard)              // the requests of a connection, until it ends
	aside   func(*guard) func(*guard) // who serves a connection's next request where fasthttp does not; nil: it does
	changed func()                    // a choice was made, which other doors want to know of soon
}

// now is the door's clock: nanoseconds, monotonic, never 0.
func (d *common) now() int64 { return int64(time.Since(d.epoch)) }

func (d *common) current() *snapshot { return d.snapshot.Load() }

// room reports whether another connection fits.
func (d *common) room() bool {
	limit := d.current().set.Door.Limits.Connections
	return limit <= 0 || d.conns.count() < limit
}

// parting reports whether an answer must end its connection: the door ends, and
// cannot move it to the next one.
func (d *common) parting(g *guard) bool {
	return d.draining.Load() && (d.moves.Load() == nil || !g.Polled())
}

// conns is the clients' connections.
type conns struct {
	mu  sync.Mutex
	all map[*guard]struct{}
}

func (c *conns) add(g *guard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[*guard]struct{}{}
	}
	c.all[g] = struct{}{}
}

func (c *conns) remove(g *guard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, g)
}

func (c *conns) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// list is the connections there are now.
func (c *conns) list() []*guard {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*guard, 0, len(c.all))
	for g := range c.all {
		list = append(list, g)
	}
	return list
}

// underway reports whether some client is sending a request or taking an answer.
func (c *conns) underway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for g := range c.all {
		if g.midway.Load() || g.writing.Load() {
			return true
		}
	}
	return false
}

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
			x.show()
			list = append(list, x)
		}
	}
	return list
}

// find is the request of that id; nil: there is none.
func (l *inFlight) find(id string) *exchange {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.byID[id]
	if x != nil {
		x.show()
	}
	return x
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
