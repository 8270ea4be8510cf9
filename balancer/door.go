package balancer

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"roundhouse/balancer/certificate"
	"roundhouse/balancer/control"
	"roundhouse/balancer/lease"
	"roundhouse/configs"
)

// Options says what a door needs to stand.
type Options struct {
	ID       string       // [A-Za-z0-9_-]{1,64}; empty: drawn at random
	Listener net.Listener // where clients come; the door closes it
	Socket   string       // the private socket's path; empty: none
	StateDir string       // where the worker set is kept; empty: nowhere
	Build    string       // the version that /state shows
	Set      *control.WorkerSet
	// Found puts workers in a set that no configuration names, whenever the set changes
	// (Refind); nil: there are none.
	Found   func(*control.WorkerSet)
	Log     *slog.Logger      // nil: slog.Default
	Logs    func(configs.Log) // told how the worker set in force wants the log; nil: nobody is
	Access  io.Writer         // takes a line a request in one Write, which must not wait; nil: none are written
	Dropped func() uint64     // the lines that Access has lost; nil: it loses none
	// DrainTimeout bounds how long streams may go on after Run's context ends, unless
	// the worker set says longer.
	DrainTimeout time.Duration
	Batches      string // where files and batches are kept; empty: they are not served
	Usage        string // where the use of keys, and where canaries stand, is kept; empty: nowhere
	// PluginDeadline bounds one call of a filter or policy plugin; 0: the host's default.
	PluginDeadline time.Duration
}

// Door is one front door.
type Door struct {
	common
	opts   Options
	ctx    context.Context
	end    context.CancelFunc
	wg     sync.WaitGroup
	server *fasthttp.Server
	side   *side  // for what passes through
	peers  *peers // the other doors

	fasthttpOnly bool          // tests have every request served both ways
	moveWithin   time.Duration // one message to the next door, and its answer
	pluginWithin time.Duration
	cutWithin    time.Duration // requests that are cut have so long to tell their clients

	shutdown chan struct{} // closed by POST /shutdown
	once     sync.Once

	applying sync.Mutex // held while a worker set is put in force, and whatever that may wait for

	mu    sync.Mutex               // held while the snapshot is replaced
	cert  *certificate.Certificate // of the snapshot; nil: plain HTTP
	lease lease.Lease              // no other supervisor than the present one is obeyed while it runs
}

// Listen returns the address that the door really has.
func (d *Door) Listen() string { return d.opts.Listener.Addr().String() }

// serveFasthttp has fasthttp serve a connection, up to a request that passes through.
func (d *Door) serveFasthttp(g *guard) {
	f := &fasthttpStay{}
	g.fasthttp = f
	d.server.ServeConn(g)
	if f.to != nil { // else another goroutine may have the connection by now
		f.to(g)
	}
}
