package balancer

import (
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/decision"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/http2"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/memory"
	"roundhouse/balancer/metrics"
	"roundhouse/balancer/requestlog"
	"roundhouse/balancer/stored"
	"roundhouse/balancer/usage"
)

// common is what connections and requests have of their door.
type common struct {
	id     string
	log    *slog.Logger
	epoch  time.Time // the door's clock begins here
	access io.Writer // nil: no line is written for a request

	view    atomic.Pointer[view] // in force
	fleet   fleet.Fleet
	ledger  *ledger.Ledger
	metrics *metrics.Metrics
	watcher *conn.Watcher

	memory   memory.Bound
	promises memory.Promises // of bodies that have still to come
	conns    conns
	live     inFlight
	why      decision.Ring
	past     past
	lobby    fleet.Tally // of requests that came to no pool
	held     stored.Responses
	usage    *usage.Book
	requests requestlog.Log
	faults   faults

	draining atomic.Bool
	seeking  atomic.Bool           // workers that are to be found are not known yet
	mover    atomic.Pointer[mover] // while the door drains, and another takes its idle connections

	step        time.Duration
	writeWithin time.Duration // one write to a client

	http2   *http2.Server                  // serves those who speak it
	serve   func(*guard)                   // the requests of a connection, until it ends
	aside   func(path string) func(*guard) // who serves a path that fasthttp does not; nil: it does
	changed func()                         // a choice was made, which other doors want to know of soon
}

// now is the door's clock: nanoseconds, monotonic, never 0.
func (d *common) now() int64 { return int64(time.Since(d.epoch)) }

func (d *common) current() *view { return d.view.Load() }

// room reports whether another connection fits.
func (d *common) room() bool {
	limit := d.current().set.Door.Limits.Connections
	return limit <= 0 || d.conns.count() < limit
}

// parting reports whether an answer must end its connection: the door ends, and
// cannot move it to the next one.
func (d *common) parting(g *guard) bool {
	return d.draining.Load() && (d.mover.Load() == nil || !g.Polled())
}
