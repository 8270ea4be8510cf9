package balancer

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/balancer/wire"
)

// guard stands between a client's connection and fasthttp. It checks the head
// and the framing of every request before fasthttp sees a byte of it, charges
// bodies to the door's memory, keeps the deadlines of reading, and learns at
// once when the client leaves.
type guard struct {
	sock
	d    *Door
	gen  int32 // tells this connection from the next one with its descriptor
	fd   int
	gone atomic.Bool // the client has left

	midway  atomic.Bool // a request has come in part, or had when bytes were last waited for
	writing atomic.Bool

	mu      sync.Mutex
	x       *exchange // whom to tell when the client leaves
	watched bool      // the kernel tells when the client leaves
	resting bool      // the reader waits for a next request
	nudged  bool      // and its wait was cut short
	held    *[bufSize]byte
	from    int // of held, what was not handed on yet
	ok      int // of held, what has been checked
	to      int

	ready    func(fd uintptr) bool // serveReady
	then     after                 // what it has left to do
	streamed *exchange             // whose answer is a stream

	// Of the request that is being read.
	head     []byte // its head so far, where it came in pieces
	inBody   bool
	left     int64 // bytes of the body still to come
	chunks   *wire.Chunks
	payload  int64 // of a chunked body
	since    int64 // when its body began, by the door's clock
	came     int64 // bytes of its body that have come
	began    time.Time
	booked   int64 // memory booked for its body
	promised int64 // of that, what has still to come
	outgoing int64 // memory booked for the answer that is being sent
	served   bool  // a request was answered on this connection
	err      error
	refused  bool // the client was told why, and that nothing follows
	limits   *limits
}

// limits is what of the configuration a guard needs.
type limits struct {
	body       int64
	headers    int
	headerRead time.Duration
	bodyIdle   time.Duration
	uploadRate int64 // bytes a second of a body, at least
	keepAlive  time.Duration
}

// Read implements net.Conn. What it returns has been checked, and never
// reaches past the end of a request: the next one is looked at when fasthttp
// comes for it.
func (g *guard) Read(p []byte) (int, error) {
	g.sent() // fasthttp reads on when it has written
	for {
		if g.ok > g.from {
			n := copy(p, g.held[g.from:g.ok])
			if g.from += n; g.from == g.to {
				g.releaseHeld()
			}
			return n, nil
		}
		if g.err != nil {
			return 0, g.refuse()
		}
		if g.to > g.from {
			if g.goesAside() {
				return 0, io.EOF
			}
			g.check()
			continue
		}
		g.releaseHeld()
		if g.inBody && g.chunks == nil && len(p) >= bufSize {
			return g.readBody(p)
		}
		if err := g.await(false); err != nil {
			g.readError(err)
		}
	}
}

// await waits for bytes, and holds them. Between two requests, the wait ends
// where the connection moves to the next door; for this one it is then over.
// With serve, plain requests are answered meanwhile, and g.then says why it ends.
func (g *guard) await(serve bool) error {
	if g.raw == nil || g.inBody || len(g.head) > 0 {
		g.arm()
		return g.hold()
	}
	for {
		g.arm()
		g.rest(true)
		err := os.ErrDeadlineExceeded
		switch {
		case g.d.mover.Load() != nil:
		case serve && g.watched:
			err = g.wait(g.ready)
		default:
			err = g.hold()
		}
		nudged := g.rest(false)
		if nudged {
			g.readBy = 0 // the deadline that is set is not the guard's
		}
		if err == nil || !timedOut(err) {
			return err
		}
		if m := g.d.mover.Load(); m != nil && m.take(g) {
			return io.EOF
		}
		if !nudged && g.readBy <= g.d.now() {
			return err // idle for too long
		}
	}
}

// hold waits for bytes and holds them.
func (g *guard) hold() error {
	buf, n, err := g.receive()
	if err == nil {
		g.held, g.from, g.ok, g.to, g.then = buf, 0, 0, n, isHeld
	}
	return err
}

// rest notes whether the reader waits for a next request, and reports whether
// it was nudged.
func (g *guard) rest(on bool) (nudged bool) {
	g.mu.Lock()
	g.resting, nudged = on, g.nudged
	g.nudged = false
	g.mu.Unlock()
	return nudged
}

// nudge ends the reader's wait for a next request.
func (g *guard) nudge() {
	g.mu.Lock()
	g.interrupt()
	g.mu.Unlock()
}

// interrupt is nudge, under the lock.
func (g *guard) interrupt() {
	if g.resting {
		g.nudged = true
		g.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// readBody reads a long body straight into fasthttp's buffer.
func (g *guard) readBody(p []byte) (int, error) {
	g.arm()
	n, err := g.sock.Read(p[:min(int64(len(p)), g.left)])
	if err != nil {
		g.readError(err)
		return 0, g.refuse()
	}
	g.took(n)
	return n, nil
}

// took counts bytes of a body whose length is known.
func (g *guard) took(n int) {
	g.came += int64(n)
	g.kept(int64(n))
	if g.left -= int64(n); g.left == 0 {
		g.endBody()
	}
}

// bodySpan is how long the next bytes of a body may take: as long as a body
// may pause, unless it is slower on the whole than the least upload rate.
func (g *guard) bodySpan(now int64) time.Duration {
	l := g.limits
	whole := g.since + int64(l.bodyIdle) + int64(float64(g.came)/float64(l.uploadRate)*1e9)
	return time.Duration(max(1, min(int64(l.bodyIdle), whole-now)))
}

func (g *guard) releaseHeld() {
	if g.held != nil {
		drop(g.held)
		g.held, g.from, g.ok, g.to = nil, 0, 0, 0
	}
}

// pipelined reports whether the client has sent bytes of a next request.
func (g *guard) pipelined() bool { return g.to > g.from }

// arm sets the deadline of the next read: one for the whole head, one for each
// read of a body, one for the idle time between requests.
func (g *guard) arm() {
	if m := g.inBody || len(g.head) > 0; m != g.midway.Load() {
		g.midway.Store(m)
	}
	now := g.d.now()
	span := g.limits.keepAlive
	switch {
	case g.inBody:
		span = g.bodySpan(now)
	case len(g.head) > 0:
		span = g.limits.headerRead - time.Since(g.began)
	case !g.served:
		span = g.limits.headerRead
	}
	g.readIn(now, span)
}

// readError translates an error of the socket for fasthttp's error handler.
func (g *guard) readError(err error) {
	midway := g.inBody || len(g.head) > 0
	switch {
	case !midway:
		g.err = io.EOF // idle too long, or gone: nothing to answer
	case timedOut(err):
		g.err = &wire.HeadError{Status: 408, What: "the request did not arrive in time"}
	case err == io.EOF:
		g.err = &wire.HeadError{Status: 400, What: "the request ended before it was whole"}
	default:
		g.err = err
	}
	g.unbook()
}

// Write implements net.Conn.
func (g *guard) Write(p []byte) (int, error) {
	if g.refused {
		return len(p), nil
	}
	if err := g.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// oneWrite is what a client must take within the time of one write: one that is slow and
// takes a long answer is not cut off while it takes some.
const oneWrite = 256 << 10

// send writes to the client, each part within a bound.
func (g *guard) send(p []byte) error {
	g.writing.Store(true)
	defer g.writing.Store(false)
	for {
		n := min(len(p), oneWrite)
		g.writeIn(g.d.now(), g.d.writeWithin)
		if _, err := g.sock.Write(p[:n]); err != nil || n == len(p) {
			return err
		}
		p = p[n:]
	}
}

// SetDeadline implements net.Conn. fasthttp takes deadlines away when it lets a
// connection go; the guard sets its own.
func (g *guard) SetDeadline(t time.Time) error {
	g.readBy, g.writeBy = 0, 0
	return g.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (g *guard) SetReadDeadline(t time.Time) error {
	g.readBy = 0
	return g.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (g *guard) SetWriteDeadline(t time.Time) error {
	g.writeBy = 0
	return g.Conn.SetWriteDeadline(t)
}

// check walks over held bytes up to the end of the request that they belong
// to. What it refuses is never handed on.
func (g *guard) check() {
	for g.ok < g.to {
		b := g.held[g.ok:g.to]
		n := 0
		switch {
		case !g.inBody:
			n = g.checkHead(b)
		case g.chunks != nil:
			n = g.checkChunks(b)
		default:
			n = int(min(int64(len(b)), g.left))
			g.took(n)
		}
		if g.err != nil {
			return
		}
		g.ok += n
		if !g.inBody && len(g.head) == 0 {
			return
		}
	}
}

// checkHead takes bytes of a head and returns how many belong to it.
func (g *guard) checkHead(b []byte) int {
	if len(g.head) == 0 {
		if len(b) >= 2 && b[0] == '\r' && b[1] == '\n' {
			return 2 // an empty line before a request is ignored, as RFC 9112 says
		}
		if end := wire.HeadEnd(b); end > 0 {
			g.startBody(b[:end])
			return end
		}
		if b[0] < ' ' && b[0] != '\r' {
			g.err = io.EOF // TLS, or noise: nothing that an answer could help
			return len(b)
		}
		g.began = time.Now()
	}
	was := len(g.head)
	g.head = append(g.head, b...)
	if end := wire.HeadEnd(g.head); end > 0 {
		g.startBody(g.head[:end])
		g.head = nil
		return end - was
	}
	if err := wire.CheckPartial(g.head); err != nil {
		g.err = err
	} else if len(g.head) > g.limits.headers {
		g.err = &wire.HeadError{Status: 431, What: "the head of the request is too long"}
	}
	return len(b)
}

// startBody checks a whole head and books its body.
func (g *guard) startBody(head []byte) {
	if err := wire.CheckPartial(head); err != nil {
		g.err = err
		return
	}
	if len(head) > g.limits.headers {
		g.err = &wire.HeadError{Status: 431, What: "the head of the request is too long"}
		return
	}
	h, err := wire.CheckHead(head)
	switch {
	case err != nil:
		g.err = err
	case h.Length > g.limits.body:
		g.err = &wire.HeadError{Status: 413, What: "the body is longer than this door takes"}
	case h.Chunked || h.Length > int64(g.to-g.ok):
		if _, f := g.d.current().admit(h.Seen.Authorization, h.Seen.Key); f != nil {
			g.err = f // before a byte of its body is waited for
			return
		}
	}
	switch {
	case g.err != nil:
	case h.Chunked:
		g.inBody, g.chunks, g.payload = true, &wire.Chunks{Trailer: wire.CheckTrailer}, 0
	case h.Length > 0:
		g.inBody, g.left = true, h.Length
		if g.book(h.Length); g.err == nil && !g.promise(h.Length) {
			g.err = &wire.HeadError{Status: 503, What: "this address has as many bodies under way as it may; send those first"}
		}
	}
	g.since, g.came = g.d.now(), 0
	g.served = g.served || g.err == nil
}

// checkChunks takes bytes of a chunked body, without changing them.
func (g *guard) checkChunks(b []byte) int {
	payload, used, err := g.chunks.Walk(b)
	if err != nil {
		g.err = &wire.HeadError{Status: 400, What: err.Error()}
		return used
	}
	g.payload += int64(payload)
	g.came += int64(payload)
	switch {
	case g.payload > g.limits.body || g.chunks.Wire > g.limits.body+4096:
		g.err = &wire.HeadError{Status: 413, What: "the body is longer than this door takes"}
	case g.chunks.Done():
		g.endBody()
	default:
		g.book(int64(payload))
	}
	return used
}

func (g *guard) endBody() { g.inBody, g.chunks, g.left = false, nil, 0 }

// book charges bytes of a body to the door's memory.
func (g *guard) book(n int64) {
	if !g.d.book(n) {
		g.err = &wire.HeadError{Status: 503, What: "the door holds as many request bodies as it may; try again"}
		return
	}
	g.booked += n
}

// takeBooked hands the memory booked for the request just read to its
// exchange.
func (g *guard) takeBooked() int64 {
	n := g.booked
	g.booked = 0
	return n
}

func (g *guard) unbook() {
	g.kept(g.promised)
	g.d.memory.give(g.booked)
	g.booked = 0
}

// serve names the exchange to tell when the client leaves, nil for none.
func (g *guard) serve(x *exchange) {
	g.mu.Lock()
	g.x = x
	g.mu.Unlock()
	if x != nil && g.gone.Load() {
		x.booking.cancel(causeClient)
	}
}

// hangup is called by the watcher when the client has closed its side.
func (g *guard) hangup() {
	g.gone.Store(true)
	g.mu.Lock()
	x := g.x
	if x != nil {
		x.show()
	}
	g.interrupt() // a reader that waits may have read all but the end
	g.mu.Unlock()
	if x != nil {
		x.booking.cancel(causeClient)
	}
}

// Close implements net.Conn.
func (g *guard) Close() error {
	if g.then == isAside {
		return nil // it goes on there
	}
	if g.refused {
		g.linger()
	}
	g.d.watcher.remove(g)
	g.releaseHeld()
	g.unbook()
	g.sent()
	g.d.forget(g)
	return g.Conn.Close()
}

// newGuard takes a connection in.
func (d *Door) newGuard(c net.Conn) *guard { return d.guardOf(c, d.current().tls) }

// guardOf is newGuard; the connection speaks TLS where a configuration of it is
// given.
func (d *Door) guardOf(c net.Conn, over *tls.Config) *guard {
	g := &guard{d: d, limits: d.current().limits}
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3})
	}
	if over != nil {
		c = tls.Server(c, over)
	}
	g.sock.init(c)
	g.ready = g.serveReady
	g.watched = d.watcher.add(g)
	return g
}
