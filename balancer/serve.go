package balancer

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// next waits for a request and serves it where it is plain. Where it is not,
// nothing was consumed.
func (g *guard) next() after {
	if g.err != nil || g.inBody || len(g.head) > 0 || g.ok > g.from {
		return toFasthttp
	}
	if g.from == g.to {
		g.releaseBuf()
		g.then = stays
		if err := g.await(true); err != nil {
			g.readError(err)
			return toFasthttp
		}
		if g.then != offPoller {
			return g.then
		}
	}
	return g.servePlain(false)
}

// serveReady is called by the poller whenever the connection may hold bytes. It
// serves what came whole at once, and then waits on: to look whether there is
// more would cost a call that mostly finds nothing. What is left to do
// elsewhere, g.then says: whatever closes, reads or gives up the connection
// would wait for the end of this function.
func (g *guard) serveReady(fd uintptr) bool {
	for g.TryRead(fd) {
		if g.Failed() != nil {
			return true
		}
		if g.rest(false) {
			g.Rearm()
		}
		g.from, g.ok = 0, 0
		g.buf, g.to = g.Taken()
		full := g.to == conn.BufSize
		for g.then = stays; g.then == stays && g.from < g.to; {
			g.then = g.servePlain(true)
		}
		if g.then != stays {
			return true
		}
		g.releaseBuf()
		g.Arm()
		g.rest(true)
		if g.d.moves.Load() != nil {
			g.Fail(os.ErrDeadlineExceeded)
			return true
		}
		// A read that has not filled its buffer has emptied the socket, and what comes
		// after it is told; only an end that came with the bytes was told with them.
		if !full && !g.gone.Load() {
			return false
		}
	}
	return false
}

// plain looks at a head and reports what it is for and where it ends, surface.None
// where the request is not plain.
func (g *guard) plain(v *snapshot, h *wire.Head) (surface.Kind, int) {
	b := g.buf[g.from:g.to]
	end := wire.HeadEnd(b)
	if end == 0 || end > g.limits.headers || b[0] != 'P' || v.ext != nil || len(v.set.Door.CORS.Origins) > 0 {
		return surface.None, 0
	}
	var err *wire.HeadError
	if *h, err = wire.CheckHead(b[:end]); err != nil {
		return surface.None, 0
	}
	s := &h.Seen
	if h.Chunked || h.Continue || h.HTTP10 || s.Again || s.Upgrade != nil || h.Length == 0 || h.Length > g.limits.body ||
		s.Connection != nil && string(s.Connection) != "keep-alive" || string(h.Method) != "POST" {
		return surface.None, 0
	}
	switch k := surface.Paths[string(h.Path)]; k {
	case surface.Chat, surface.Text, surface.Generation, surface.JSON:
		return k, end
	}
	return surface.None, 0
}

// body reads the body behind a plain head: where it lies if all of it has come,
// else into one buffer of its size, or, where it is longer than a piece, of the size
// of what has come and the next piece. The head's bytes stay as they are.
func (g *guard) body(h *wire.Head) (body []byte, lent *[]byte, ok bool) {
	n := int(h.Length)
	if g.to-g.from >= n {
		body = g.buf[g.from : g.from+n]
		g.from += n
		g.ok = g.from
		return body, nil, true
	}
	lent = conn.LendBody(min(h.Length, conn.Piece))
	got := copy(*lent, g.buf[g.from:g.to])
	g.from, g.ok = g.to, g.to
	g.inBody, g.left, g.since, g.came = true, h.Length, g.d.now(), 0
	g.Took(got)
	for {
		if err := g.Gather((*lent)[got:], g); err != nil {
			g.readError(err)
			conn.GiveBody(lent)
			return nil, nil, false
		}
		if got = len(*lent); got == n {
			return *lent, lent, true
		}
		next := int64(min(4*got, n))
		if g.book(next - int64(got)); g.err != nil {
			g.unbook()
			conn.GiveBody(lent)
			return nil, nil, false
		}
		longer := conn.LendBody(next)
		copy(*longer, *lent)
		conn.GiveBody(lent)
		lent = longer
	}
}

// plainHeads are lent for a head that is served.
var plainHeads = sync.Pool{New: func() any { return new(wire.Head) }}

// servePlain answers the request that is held, if it is plain. With whole, it
// leaves one whose body has not come whole. A panic ends its request and its
// connection alone.
func (g *guard) servePlain(whole bool) (then after) {
	h := plainHeads.Get().(*wire.Head)
	defer func() {
		e := recover()
		path := h.Path
		*h = wire.Head{} // it holds the connection's buffer
		plainHeads.Put(h)
		if e != nil {
			g.d.log.Error("a request panicked", "panic", fmt.Sprint(e), "stack", string(debug.Stack()))
			g.send(g.d.alone(&surface.Failure{Status: 500, Type: "api_error", Code: "internal", Message: "the door failed on this request"}, surface.PathOf(path), surface.RequestID(nil), true))
			then = leaves
		}
	}()
	d := g.d
	v := d.current()
	k, end := g.plain(v, h)
	if k == surface.None {
		return toFasthttp
	}
	if whole && int64(g.to-g.from-end) < h.Length {
		return offPoller
	}
	if int64(g.to-g.from-end) < h.Length {
		if _, f := v.admit(h.Seen.Authorization, h.Seen.Key); f != nil {
			g.tell(d.alone(f, surface.PathOf(h.Path), surface.RequestID(h.Seen.RequestID), true))
			return leaves
		}
	}
	first := min(h.Length, conn.Piece)
	if !d.book(first) {
		return toFasthttp
	}
	g.booked = first
	g.from += end
	g.ok, g.served = g.from, true
	body, lent, ok := g.body(h)
	if !ok {
		return toFasthttp
	}
	return g.answer(v, h, k, body, lent)
}

// answer serves one plain request.
func (g *guard) answer(v *snapshot, h *wire.Head, kd surface.Kind, body []byte, lent *[]byte) after {
	d := g.d
	x := d.newExchange(v, g, &h.Seen)
	x.asked.kind, x.asked.method, x.asked.path, x.asked.query, x.close = kd, "POST", surface.PathOf(h.Path), string(h.Query), d.parting(g)
	x.payload.Body, x.payload.Lent, x.payload.Booked = body, lent, g.takeBooked()
	k, f := v.admit(h.Seen.Authorization, h.Seen.Key)
	if f == nil {
		f = x.enter(&h.Seen, k)
	}
	if f != nil {
		x.turnAway(f)
		conn.GiveBody(lent)
		return carryOn(g.send(d.alone(f, x.asked.path, x.asked.id, x.close)) == nil && !x.close)
	}
	if x.asked.streams() {
		if lent == nil {
			x.payload.Body = append([]byte(nil), body...)
		}
		g.letGo()
		g.streamed = newRelay(x)
		return streams
	}
	if lent != nil {
		g.letGo()
	}
	x.unary(&x.out)
	on := x.out.send(g) && !x.close
	x.free()
	return carryOn(on)
}

// letGo gives the connection's buffer back unless bytes of a next request lie
// in it.
func (g *guard) letGo() {
	if g.from == g.to {
		g.releaseBuf()
	}
}

func carryOn(on bool) after {
	if on {
		return stays
	}
	return leaves
}

func (o *direct) room() []byte {
	if o.o == nil {
		o.o = conn.LendOut()
	}
	return o.o.B[:conn.HeadRoom]
}

func (o *direct) reply(x *exchange, r reply, whole []byte) {
	head := x.head(o.o.Head[:0], r, len(whole)-conn.HeadRoom, nil)
	if from := conn.HeadRoom - len(head); from >= 0 {
		copy(whole[from:], head)
		o.whole = whole[from:]
	} else {
		o.whole = append(head, whole[conn.HeadRoom:]...)
	}
}

func (o *direct) refuse(x *exchange, f *surface.Failure) {
	x.refused(f)
	o.reply(x, headOf(f), append(o.room(), f.JSON(x.asked.path)...))
}

func (o *direct) lines() []byte { return nil }

func (o *direct) passed(keep bool) { o.on = keep }

func (o *direct) end(x *exchange, f *surface.Failure) {
	x.close = true
	if f != nil {
		o.refuse(x, f)
	}
}

// send writes the answer, and reports whether the client has got it.
func (o *direct) send(g *guard) bool {
	ok := o.on || o.whole != nil && g.send(o.whole) == nil
	g.sent()
	if o.o != nil {
		o.o.Free()
	}
	return ok
}

// newGuard takes a connection in.
func (d *common) newGuard(c net.Conn) *guard { return d.guardOf(c, d.current().tls) }

// guardOf is newGuard; the connection speaks TLS where a configuration of it is
// given.
func (d *common) guardOf(c net.Conn, over *tls.Config) *guard {
	g := &guard{d: d, limits: d.current().limits}
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3})
	}
	if over != nil {
		c = tls.Server(conn.Below(c), over)
	}
	g.Sock.Init(c)
	g.ready = g.serveReady
	g.watch.mark, g.watch.on = d.watcher.Add(c, g)
	return g
}
