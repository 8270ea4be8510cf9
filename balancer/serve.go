package balancer

import (
	"fmt"
	"runtime/debug"
	"strconv"

	"roundhouse/balancer/wire"
)

// serve answers the requests of a connection. Those that are plain, which is
// nearly all, the door reads itself, in place and once; at the first that is
// not, the connection goes to fasthttp for good. Both ways use the same checks
// of heads and bodies, the same exchange, and the same bounds.
func (d *Door) serve(g *guard) {
	for !d.fasthttpOnly {
		var h wire.Head
		v, k := g.next(&h)
		if k == kindNone {
			break
		}
		body, lent, ok := g.body(&h)
		if !ok {
			break
		}
		if !d.servePlain(g, v, &h, k, body, lent) {
			return
		}
	}
	d.server.ServeConn(g)
}

// next waits for the head of a request and reports what it is for, kindNone
// where the request is not plain: then nothing was consumed. The view is the one
// in force once the head is there, however long the connection was idle before.
func (g *guard) next(h *wire.Head) (*view, kind) {
	if g.err != nil || g.inBody || len(g.head) > 0 || g.ok > g.from {
		return nil, kindNone
	}
	if g.from == g.to {
		g.releaseHeld()
		buf, n, err := g.await()
		if err != nil {
			g.readError(err)
			return nil, kindNone
		}
		g.held, g.from, g.ok, g.to = buf, 0, 0, n
	}
	v := g.d.current()
	b := g.held[g.from:g.to]
	end := wire.HeadEnd(b)
	if end == 0 || end > g.limits.headers || b[0] != 'P' || v.ext != nil || len(v.set.Door.CORS.Origins) > 0 {
		return nil, kindNone
	}
	var err *wire.HeadError
	if *h, err = wire.CheckHead(b[:end]); err != nil {
		return nil, kindNone
	}
	s := &h.Seen
	if h.Chunked || h.Continue || h.HTTP10 || s.Again || s.Upgrade != nil || h.Length == 0 || h.Length > g.limits.body ||
		s.Connection != nil && string(s.Connection) != "keep-alive" || string(h.Method) != "POST" {
		return nil, kindNone
	}
	switch k := surface[string(h.Path)]; k {
	case kindChat, kindText, kindGen, kindJSON:
		if g.d.book(h.Length) {
			g.booked = h.Length
			g.from += end
			g.ok, g.served = g.from, true
			return v, k
		}
	}
	return nil, kindNone
}

// body reads the body behind a plain head: where it lies if all of it has come,
// else into one buffer of its size. The head's bytes stay as they are.
func (g *guard) body(h *wire.Head) (body []byte, lent *[]byte, ok bool) {
	n := int(h.Length)
	if g.to-g.from >= n {
		body = g.held[g.from : g.from+n]
		g.from += n
		g.ok = g.from
		return body, nil, true
	}
	lent = lendBody(h.Length)
	body = *lent
	got := copy(body, g.held[g.from:g.to])
	g.from, g.ok = g.to, g.to
	g.inBody, g.left, g.since, g.came = true, h.Length, g.d.now(), 0
	for g.took(got); g.inBody; g.took(got) {
		at := n - int(g.left)
		g.arm()
		var err error
		if got, err = g.sock.Read(body[at:]); err != nil {
			g.readError(err)
			giveBody(lent)
			return nil, nil, false
		}
	}
	return body, lent, true
}

// servePlain answers one request and reports whether the connection serves on
// here. A panic ends its request and its connection alone.
func (d *Door) servePlain(g *guard, v *view, h *wire.Head, kd kind, body []byte, lent *[]byte) (on bool) {
	defer func() {
		if e := recover(); e != nil {
			d.log.Error("a request panicked", "panic", fmt.Sprint(e), "stack", string(debug.Stack()))
			g.send(d.alone(&failure{status: 500, typ: "api_error", code: "internal", message: "the door failed on this request"}, requestID(nil), true))
			g.Close()
			on = false
		}
	}()
	a := asked{kind: kd, method: "POST", path: pathOf(h.Path), query: string(h.Query), seen: h.Seen, close: d.parting(g)}
	x := d.newExchange(v, g, &a)
	x.body, x.lent, x.booked = body, lent, g.takeBooked()
	k, f := v.admit(h.Seen.Authorization, h.Seen.Key)
	if f == nil {
		f = x.enter(&a.seen, k)
	}
	if f != nil {
		x.turnAway(f)
		giveBody(lent)
		return d.carryOn(g, g.send(d.alone(f, x.id, x.close)) == nil && !x.close)
	}
	if x.streams() {
		if lent == nil {
			x.body = append([]byte(nil), body...)
		}
		g.letGo()
		x.openStream()
		go x.run() // on a stack of its own, which is small while it waits
		return false
	}
	if lent != nil {
		g.letGo()
	}
	var out direct
	x.unary(&out)
	return d.carryOn(g, out.send(g) && !x.close)
}

// letGo gives the connection's buffer back unless bytes of a next request lie
// in it.
func (g *guard) letGo() {
	if g.from == g.to {
		g.releaseHeld()
	}
}

// carryOn reports whether a connection serves on; it closes one that does not.
func (d *Door) carryOn(g *guard, on bool) bool {
	if !on {
		g.Close()
	}
	return on
}

// direct answers where the door has read the request itself: the answer is read
// from the worker behind room for its head, and leaves in one write, once the
// exchange has ended and its books are closed.
type direct struct {
	o     *outBuf
	whole []byte // what the client gets; nil where it has left
}

// headRoom holds the head of nearly every answer.
const headRoom = 512

func (o *direct) room() []byte {
	if o.o == nil {
		o.o = outs.Get().(*outBuf)
	}
	return o.o.b[:headRoom]
}

func (o *direct) reply(x *exchange, r reply, whole []byte) {
	head := x.head(o.o.head[:0], r, len(whole)-headRoom, nil)
	if from := headRoom - len(head); from >= 0 {
		copy(whole[from:], head)
		o.whole = whole[from:]
	} else {
		o.whole = append(head, whole[headRoom:]...)
	}
}

func (o *direct) refuse(x *exchange, f *failure) {
	x.refused(f)
	r := reply{ctype: "application/json"}
	if f.retryAfter > 0 {
		r.after = strconv.Itoa(f.retryAfter)
	}
	o.reply(x, r, append(o.room(), f.body()...))
}

func (o *direct) end(x *exchange, f *failure) {
	x.close = true
	if f != nil {
		o.refuse(x, f)
	}
}

// send writes the answer, and reports whether the client has got it.
func (o *direct) send(g *guard) bool {
	ok := o.whole != nil && g.send(o.whole) == nil
	if o.o != nil {
		o.o.free()
	}
	return ok
}
