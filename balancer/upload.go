package balancer

import (
	"net"
	"net/netip"
	"time"

	"roundhouse/balancer/memory"
	"roundhouse/balancer/wire"
)

// promise is what a connection's client has announced and not sent.
type promise struct {
	by netip.Addr
	n  int64
}

// promise notes that a body is booked which has still to come; forwarded is what a
// proxy says of whom it comes from.
func (g *guard) promise(n int64, forwarded []byte) bool {
	if n < memory.LeastBig {
		return true
	}
	by := g.d.current().trusted.client(g.peer(), forwarded)
	if !g.d.promises.Take(by, n, g.d.memory.Limit.Load()/memory.PromisePart) {
		return false
	}
	g.promised = promise{by, n}
	return true
}

// kept notes that n bytes of a promised body have come.
func (g *guard) kept(n int64) {
	if n = min(n, g.promised.n); n > 0 {
		g.promised.n -= n
		g.d.promises.Keep(g.promised.by, n)
	}
}

// RemoteAddr implements net.Conn: the client that a proxy has named, if one has.
func (g *guard) RemoteAddr() net.Addr {
	if g.proxied.IsValid() {
		return net.TCPAddrFromAddrPort(g.proxied)
	}
	return g.Conn.RemoteAddr()
}

// peer is the client's address, as its connection shows it.
func (g *guard) peer() netip.Addr {
	if g == nil {
		return netip.Addr{}
	}
	if g.proxied.IsValid() {
		return g.proxied.Addr()
	}
	if a, ok := g.Conn.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// readBody reads a long body straight into fasthttp's buffer.
func (g *guard) readBody(p []byte) (int, error) {
	g.Arm()
	n, err := g.Sock.Read(p[:min(int64(len(p)), g.left)])
	if err != nil {
		g.readError(err)
		return 0, g.refuse()
	}
	g.Took(n)
	return n, nil
}

// Took counts bytes of a body whose length is known.
func (g *guard) Took(n int) {
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
		if g.book(h.Length); g.err == nil && !g.promise(h.Length, h.Seen.Forwarded) {
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
	g.kept(g.promised.n)
	g.d.memory.Give(g.booked)
	g.booked = 0
}

// keep books n bytes in all for an answer, until it was sent.
func (g *guard) keep(n int64) bool {
	more := n - g.outgoing
	if more > 0 && !g.d.book(more) {
		return false
	}
	g.outgoing = max(g.outgoing, n)
	return true
}

// sent gives back what an answer took that the client has, or will never have.
func (g *guard) sent() {
	g.d.memory.Give(g.outgoing)
	g.outgoing = 0
}
