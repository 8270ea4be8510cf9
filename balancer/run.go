package balancer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/valyala/fasthttp"

	"roundhouse/balancer/beat"
	"roundhouse/balancer/canary"
	"roundhouse/balancer/conn"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/http2"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/metrics"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/usage"
	"roundhouse/configs"
)

// New makes a door. Run starts it.
func New(o Options) (*Door, error) {
	if o.ID == "" {
		o.ID = surface.RequestID(nil)[:12]
	}
	if !surface.ValidID(o.ID) {
		return nil, fmt.Errorf("the door's id %q must be 1 to 64 letters, digits, - or _", o.ID)
	}
	if o.Listener == nil {
		return nil, errors.New("a door needs a listener")
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 10 * time.Minute
	}
	w, err := conn.NewWatcher()
	if err != nil {
		return nil, err
	}
	d := &Door{
		opts: o, moveWithin: moveWithin, pluginWithin: pluginWithin, cutWithin: cutWithin, shutdown: make(chan struct{}),
	}
	c := &d.common
	c.id, c.log, c.epoch, c.access, c.ledger, c.watcher = o.ID, o.Log, time.Now().Add(-time.Second), o.Access, ledger.New(), w
	c.step, c.writeWithin = step, writeWithin
	c.http2 = http2.New(openStreams(c), c.draining.Load)
	d.ctx, d.end = context.WithCancel(context.Background())
	d.peers = &peers{d: c, ctx: d.ctx, wg: &d.wg, socket: o.Socket, heard: map[string]*heard{}, ways: map[string]*way{}, changed: make(chan struct{}, 1)}
	c.serve, c.changed = d.serveAll, d.peers.change
	d.fleet.Start(d.ctx, d.id, d.log, d.epoch, d.ledger)
	d.fleet.Remap, d.fleet.MoveAway, d.fleet.Resident = d.remap, d.moveAway, d.peers.resident
	d.metrics = metrics.New(o.Build, d.droppedLines)
	d.metrics.Registry.MustRegister(newGauges(c))
	d.usage, d.canaries = usage.Open(o.Usage, time.Now(), o.Log), canary.Open(o.Usage)
	d.ledger.OnEject = d.metrics.Ejected
	def := configs.DefaultDoor()
	d.memory.Limit.Store(int64(def.Memory))
	d.snapshot.Store(&snapshot{byName: map[string]*fleet.Pool{}, routes: map[string]*route{}, models: map[string]*serving{}, keys: &keyring.Ring{}, limits: limitsOf(&def)})
	d.server, d.side = d.newServer(), newSide(c, newBatches(c, d.ctx, o.Batches))
	c.aside = d.side.of
	if err := d.firstSet(); err != nil {
		d.end()
		d.requests.Close()
		w.Close()
		return nil, err
	}
	return d, nil
}

// newServer makes the fasthttp server. The guard keeps the deadlines and
// bounds, so fasthttp's are off or wider.
func (d *Door) newServer() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                       d.handle,
		ErrorHandler:                  d.refuseHead,
		NoDefaultServerHeader:         true,
		ReadBufferSize:                80 << 10,
		MaxRequestBodySize:            1 << 40,
		ReduceMemoryUsage:             true,
		KeepHijackedConns:             true,
		DisablePreParseMultipartForm:  true,
		SecureErrorLogMessage:         true,
		Concurrency:                   1 << 20,
		Logger:                        quiet{},
		DisableHeaderNamesNormalizing: false,
	}
}

// quiet swallows fasthttp's own log, which would hold parts of requests.
type quiet struct{}

// Printf implements fasthttp.Logger.
func (quiet) Printf(string, ...any) {}

// Run serves until ctx ends or POST /shutdown comes; then it drains: no new
// connections, the streams that are there go on, at most for DrainTimeout. A
// second cancel of hard ends it at once.
func (d *Door) Run(ctx, hard context.Context) error {
	go d.watcher.Run()
	private, err := d.openPrivate()
	if err != nil {
		d.stopAll()
		return err
	}
	d.peers.takeOver()
	d.side.start()
	d.wg.Add(3)
	go d.accept()
	go d.keepHouse()
	go d.peers.run()
	d.wg.Go(func() { d.usage.Run(d.ctx) })
	select {
	case <-ctx.Done():
	case <-d.shutdown:
	case <-hard.Done():
	}
	var m *connMover
	if hard.Err() == nil {
		m = findSuccessor(&d.common, d.opts.Socket, d.Listen(), d.moveWithin)
	}
	if m != nil {
		take := m.take
		d.moves.Store(&take)
	}
	d.draining.Store(true)
	d.side.batches.rest()
	d.http2.Retire()
	if m != nil {
		m.start()
	}
	d.drain(hard)
	if m != nil {
		m.end()
	}
	d.opts.Listener.Close()
	d.cutAll()
	d.canaries.Tend(time.Now(), true)
	d.peers.tell(func(*way) bool { return true }, true)
	if private != nil {
		private.Close()
	}
	d.stopAll()
	return nil
}

// accept takes connections in until the listener is closed.
func (d *Door) accept() {
	defer d.wg.Done()
	for {
		c, err := d.opts.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded):
			return
		case err != nil:
			d.log.Error("cannot accept a connection; trying again", "error", err.Error())
			fleet.Sleep(d.ctx, 50*time.Millisecond)
			continue
		}
		if !d.room() {
			c.Write([]byte("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n"))
			c.Close()
			continue
		}
		g := d.newGuard(c)
		d.conns.add(g)
		go d.greet(g)
	}
}

// greet hears who has connected, and then serves the connection.
func (d *Door) greet(g *guard) {
	if d.current().trusted.headers.include(g.peer()) {
		if err := g.introduce(); err != nil {
			g.Close()
			return
		}
	}
	if g.limits.http2 && g.choseHTTP2() {
		g.speakHTTP2()
		return
	}
	d.serve(g)
}

// quietFor is how many looks in a row must find nothing in flight before the
// door may go: a connection that was just accepted has its request on the way.
const quietFor = 10

// lastCall is how long a door without a successor goes on accepting: what the kernel
// has taken in for it would be reset with the listener.
const lastCall = 100 * time.Millisecond

// drain stops accepting, which leaves new connections to the next door on the
// same listener; without such a door it closes the listener, so that who connects is
// refused at once and does not wait for an answer that never comes. It waits until the last request has ended, those included that
// are still on their way in and answers on their way out. Where another door
// goes on, idle connections move to it meanwhile. Those that cannot be moved
// end with their next answer, and have a while for it, for a request that is on
// its way when its connection is closed would be lost.
func (d *Door) drain(hard context.Context) {
	deadline := time.NewTimer(max(d.opts.DrainTimeout, time.Duration(d.current().set.DrainSeconds*1e9)))
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	if l, ok := d.opts.Listener.(interface{ SetDeadline(time.Time) error }); ok && d.moves.Load() != nil {
		l.SetDeadline(time.Now())
	}
	began, open := time.Now(), d.moves.Load() == nil
	for quiet := 0; quiet < quietFor; quiet++ {
		if d.live.count() > 0 || d.conns.underway() || d.http2.Busy() || time.Since(began) < lingerFor && d.peers.successor() && d.conns.count() > 0 {
			quiet = 0
		}
		if open && time.Since(began) >= lastCall {
			d.opts.Listener.Close()
			open, quiet = false, 0
		}
		select {
		case <-hard.Done():
			return
		case <-deadline.C:
			d.log.Warn("the drain's time is over; what is left is cut", "requests", d.live.count())
			return
		case <-tick.C:
		}
	}
}

// cutAll tells what is left that the door ends, and closes the connections.
func (d *Door) cutAll() {
	for _, x := range d.live.list(func(*exchange) bool { return true }) {
		x.booking.cancel(causeStop)
	}
	d.live.wait(d.cutWithin)
	for _, g := range d.conns.list() {
		go g.Conn.Close() // it waits for a reader that still serves a request
	}
}

// cutWithin is how long requests that are cut may take to tell their clients.
const cutWithin = 500 * time.Millisecond

// stopAll ends the door's goroutines.
func (d *Door) stopAll() {
	d.end()
	d.opts.Listener.Close()
	d.watcher.End()
	d.mu.Lock()
	workers := d.current().workers
	d.mu.Unlock()
	d.fleet.End(workers)
	d.wg.Wait()
	d.side.batches.end()
	d.side.end()
	d.http2.Close()
	d.current().traces.Close()
	d.current().ext.Close()
	d.peers.closeWays()
	d.requests.Close()
}

// lookAtFiles is how often the certificate's files are looked at, in seconds.
const lookAtFiles = 5

// lookSoon is how often room is looked for while requests wait: some of it comes by time
// alone, as a breaker's end.
const lookSoon = 100 * time.Millisecond

// keepHouse does what is due by time alone.
func (d *Door) keepHouse() {
	defer d.wg.Done()
	second, soon := time.NewTimer(beat.Next(time.Second, 0)), time.NewTimer(time.Hour)
	defer second.Stop()
	defer soon.Stop()
	d.side.batches.start()
	due := d.fleet.Due // nil while soon is set
	for n := 1; ; {
		select {
		case <-d.ctx.Done():
			return
		case <-due:
			soon.Reset(lookSoon)
			due = nil
		case <-soon.C:
			due = d.fleet.Due
			d.side.batches.start()
			for _, p := range d.current().pools {
				p.Pump(&d.fleet)
			}
		case <-second.C:
			second.Reset(beat.Next(time.Second, 0))
			d.everySecond(d.current())
			if n++; n%lookAtFiles == 0 {
				d.mu.Lock()
				d.recertify()
				d.mu.Unlock()
			}
		}
	}
}

func (d *Door) everySecond(v *snapshot) {
	d.fleet.EverySecond(v.workers)
	d.faults.note(d.log, faultUsage, d.usage.Fault())
	d.canaries.Tend(time.Now(), false)
	d.faults.note(d.log, faultCanaries, d.canaries.Fault())
	d.faults.note(d.log, faultRequestLog, d.requests.Fault())
	d.faults.note(d.log, faultPeers, d.peers.fault(time.Now()))
}

// moveAway makes all requests at a worker go on elsewhere.
func (d *Door) moveAway(w *fleet.Worker, hung bool) {
	why := causeDrain
	if hung {
		why = causeHung
	}
	there := d.live.list(func(x *exchange) bool { return x.booking.worker.Load() == w })
	for _, x := range there {
		x.booking.moveOn(w, why)
	}
}

// droppedLines is how many lines of the log were lost.
func (d *Door) droppedLines() float64 {
	if d.opts.Dropped == nil {
		return 0
	}
	return float64(d.opts.Dropped())
}

// pluginWithin is how long a worker set waits for a plugin that is new or changed.
const pluginWithin = 15 * time.Second

// serveAll answers the requests of a connection. Those that are plain, which is
// nearly all, the door reads itself, in place and once; at the first that is
// not, the connection goes to fasthttp for good. Both ways use the same checks
// of heads and bodies, the same exchange, and the same bounds.
func (d *Door) serveAll(g *guard) {
	for !d.fasthttpOnly {
		switch g.next() {
		case leaves:
			g.Close()
			return
		case streams:
			s := g.streamed
			g.streamed = nil
			go s.run() // on a stack of its own, which is small while it waits
			return
		case toFasthttp:
			d.serveFasthttp(g)
			return
		}
	}
	d.serveFasthttp(g)
}
