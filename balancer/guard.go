package balancer

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"net"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// guard stands between a client's connection and fasthttp. It checks the head
// and the framing of every request before fasthttp sees a byte of it, charges
// bodies to the door's memory, keeps the deadlines of reading, and learns at
// once when the client leaves.
type guard struct {
	conn.Sock
	buffer
	incoming
	d    *common
	gone atomic.Bool // the client has left

	proxied netip.AddrPort // the client, as a PROXY header has named it

	midway  atomic.Bool // a request has come in part, or had when bytes were last waited for
	writing atomic.Bool

	mu      sync.Mutex
	x       asker // whom to tell when the client leaves; nil: nobody
	watch   watch
	resting bool // the reader waits for a next request
	nudged  bool // and its wait was cut short

	ready    func(fd uintptr) bool // serveReady
	then     after                 // its remaining duty
	streamed runner                // an answer that is a stream
	fasthttp *fasthttpStay         // while fasthttp serves the connection

	outgoing int64 // memory booked for the answer that is being sent
	served   bool  // a request was answered on this connection
	err      error
	refused  bool // the client was told why, and that nothing follows
	limits   *limits
}

// buffer is the bytes of a connection that were read and not handed on yet.
type buffer struct {
	buf  *[conn.BufSize]byte
	from int // the first that was not handed on
	ok   int // up to here they have been checked
	to   int
}

// incoming is the request that is being read.
type incoming struct {
	head     []byte // so far, if it came in pieces
	inBody   bool
	left     int64 // bytes of the body still to come
	chunks   *wire.Chunks
	payload  int64 // of a chunked body
	since    int64 // when its body began, by the door's clock
	came     int64 // bytes of its body that have come
	began    time.Time
	booked   int64   // memory booked for its body
	promised promise // the part of booked that has still to come
}

// writeWithin bounds one write to a client.
const writeWithin = 30 * time.Second

// lastChunk ends a chunked body.
const lastChunk = "0\r\n\r\n"

var errWriting = errors.New("the client cannot be written to")

// after is the fate of a connection once a request on it was answered.
type after int

const (
	stays      after = iota // the next request is served here
	leaves                  // it is closed
	streams                 // its answer is a stream, which goes on by itself
	toFasthttp              // fasthttp serves it from here on
	offPoller               // it lies in the buffer, and is to be served outside the poller
)

// asker is the request that a client waits for.
type asker interface {
	show()   // it is held by another goroutine, and used for no other request
	hangUp() // its client has left
}

// watch is how the door learns of a connection's end.
type watch struct {
	mark conn.Mark
	on   bool // the kernel tells when the client leaves
}

// fasthttpStay is a connection's time with fasthttp.
type fasthttpStay struct {
	to func(*guard) // who serves the connection next, if a request came that is not fasthttp's; else nil
}

// runner is an answer that goes on by itself.
type runner interface{ run() }

// Read implements net.Conn. The bytes that it returns have been checked, and never
// reaches past the end of a request: the next one is looked at when fasthttp
// comes for it.
func (g *guard) Read(p []byte) (int, error) {
	g.sent() // fasthttp reads on when it has written
	for {
		if g.ok > g.from {
			n := copy(p, g.buf[g.from:g.ok])
			if g.from += n; g.from == g.to {
				g.releaseBuf()
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
		g.releaseBuf()
		if g.inBody && g.chunks == nil && len(p) >= conn.BufSize {
			return g.readBody(p)
		}
		if err := g.await(false); err != nil {
			g.readError(err)
		}
	}
}

// goesAside reports whether the next request is not fasthttp's.
func (g *guard) goesAside() bool {
	if g.inBody || len(g.head) > 0 || g.ok > g.from || g.d.aside == nil {
		return false
	}
	g.fasthttp.to = g.d.aside(g)
	return g.fasthttp.to != nil
}

// await waits for bytes, and holds them. Between two requests, the wait ends
// where the connection moves to the next door; for this one it is then over.
// With serve, plain requests are answered meanwhile, and g.then says why it ends.
func (g *guard) await(serve bool) error {
	if !g.Polled() || g.inBody || len(g.head) > 0 {
		g.Arm()
		return g.hold()
	}
	for {
		g.Arm()
		g.rest(true)
		err := os.ErrDeadlineExceeded
		switch {
		case g.d.moves.Load() != nil:
		case serve && g.watch.on:
			err = g.Wait(g.ready)
		default:
			err = g.hold()
		}
		nudged := g.rest(false)
		if nudged {
			g.Rearm() // the deadline that is set is not the guard's
		}
		if err == nil || !conn.TimedOut(err) {
			return err
		}
		if move := g.d.moves.Load(); move != nil && (*move)(g) {
			return io.EOF
		}
		if !nudged && g.Expired(g.d.now()) {
			return err // idle for too long
		}
	}
}

// hold waits for bytes and holds them.
func (g *guard) hold() error {
	buf, n, err := g.Receive()
	if err == nil {
		g.buf, g.from, g.ok, g.to, g.then = buf, 0, 0, n, offPoller
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

func (g *guard) releaseBuf() {
	if g.buf != nil {
		conn.Drop(g.buf)
		g.buf, g.from, g.ok, g.to = nil, 0, 0, 0
	}
}

// pipelined reports whether the client has sent bytes of a next request.
func (g *guard) pipelined() bool { return g.to > g.from }

// Arm sets the deadline of the next read: one for the whole head, one for each
// read of a body, one for the idle time between requests.
func (g *guard) Arm() {
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
	g.ReadIn(now, span)
}

// readError translates an error of the socket for fasthttp's error handler.
func (g *guard) readError(err error) {
	midway := g.inBody || len(g.head) > 0
	switch {
	case !midway:
		g.err = io.EOF // idle too long, or gone: nothing to answer
	case conn.TimedOut(err):
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

// oneWrite is the least that a client must take within the time of one write: a slow
// client of a long answer is not cut off while it takes some.
const oneWrite = 256 << 10

// send writes to the client, each part within a bound.
func (g *guard) send(p []byte) error {
	g.writing.Store(true)
	defer g.writing.Store(false)
	for {
		n := min(len(p), oneWrite)
		g.WriteIn(g.d.now(), g.d.writeWithin)
		if _, err := g.Sock.Write(p[:n]); err != nil || n == len(p) {
			return err
		}
		p = p[n:]
	}
}

// check walks over held bytes up to the end of the request that they belong
// to. Refused bytes are never handed on.
func (g *guard) check() {
	for g.ok < g.to {
		b := g.buf[g.ok:g.to]
		n := 0
		switch {
		case !g.inBody:
			n = g.checkHead(b)
		case g.chunks != nil:
			n = g.checkChunks(b)
		default:
			n = int(min(int64(len(b)), g.left))
			g.Took(n)
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

// serve names the request to tell when the client leaves, nil for none. A request
// whose client has no connection to the door, for a gateway answers it, has no guard.
func (g *guard) serve(x asker) {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.x = x
	g.mu.Unlock()
	if x != nil && g.gone.Load() {
		x.hangUp()
	}
}

// Hangup is called by the watcher when the client has closed its side.
func (g *guard) Hangup() {
	g.gone.Store(true)
	g.mu.Lock()
	x := g.x
	if x != nil {
		x.show()
	}
	g.interrupt() // a reader that waits may have read all but the end
	g.mu.Unlock()
	if x != nil {
		x.hangUp()
	}
}

// Close implements net.Conn.
func (g *guard) Close() error {
	if g.fasthttp != nil && g.fasthttp.to != nil {
		return nil // it goes on there
	}
	if g.refused {
		g.linger()
	}
	g.d.watcher.Remove(g.watch.mark)
	g.releaseBuf()
	g.unbook()
	g.sent()
	g.d.conns.remove(g)
	return g.Conn.Close()
}

// refuse answers a request that the guard did not let through. fasthttp does not
// answer where it has read nothing, and would answer the rest in its own
// words, so the guard does it, and lets nothing be written behind it.
func (g *guard) refuse() error {
	var he *wire.HeadError
	var f *surface.Failure
	switch {
	case g.refused:
	case errors.As(g.err, &he):
		g.tell(g.d.refusal(he))
	case errors.As(g.err, &f):
		g.tell(g.d.alone(f, "", surface.RequestID(nil), true))
	}
	return io.EOF
}

// tell writes why a request is refused whose rest is not read.
func (g *guard) tell(answer []byte) {
	g.refused = true
	g.Conn.SetWriteDeadline(time.Now().Add(time.Second))
	g.Sock.Write(answer)
}

// linger reads on for a moment after a refusal, since closing a connection
// with unread bytes would take the answer away from the client.
func (g *guard) linger() {
	if c, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		c.CloseWrite()
	}
	g.Conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	io.CopyN(io.Discard, g.Conn, 4<<20)
}

// inner is the door's end of a connection that it has made to itself, for requests that
// come by its private socket or its admin API: whoever may ask there needs no key, and
// may name the worker.
type inner struct{ *net.UnixConn }

// inside reports whether a request comes from the door itself.
func (g *guard) inside() bool {
	_, ok := g.Conn.(inner)
	return ok
}

// pinField names the worker that a request from inside must go to.
const pinField = "X-Roundhouse-Worker"

// pinned is the worker that a request from inside must begin at; empty: any.
func (g *guard) pinned(said string) string {
	if !g.inside() {
		return ""
	}
	return said
}
