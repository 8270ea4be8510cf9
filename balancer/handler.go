package balancer

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"roundhouse/balancer/keyring"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// handle takes one request from fasthttp. A panic ends its request alone.
func (d *Door) handle(ctx *fasthttp.RequestCtx) {
	defer func() {
		if e := recover(); e != nil {
			d.log.Error("a request panicked", "panic", fmt.Sprint(e), "stack", string(debug.Stack()))
			d.fail(ctx, &surface.Failure{Status: 500, Type: "api_error", Code: "internal", Message: "the door failed on this request"})
		}
	}()
	v := d.current()
	d.cors(ctx, v)
	path := string(ctx.URI().PathOriginal())
	k := surface.KindOf(path)
	if string(ctx.Method()) == "OPTIONS" {
		ctx.SetStatusCode(204)
		return
	}
	switch k {
	case surface.None:
		d.fail(ctx, surface.NotFound("%s is not served here", strings.ToValidUTF8(path[:min(len(path), 200)], "?")))
		return
	case surface.Health:
		d.health(ctx, v)
		return
	case surface.Metrics:
		d.serveMetrics(ctx, v)
		return
	}
	key, f := v.admit(ctx.Request.Header.Peek("Authorization"), ctx.Request.Header.Peek("X-Api-Key"))
	if f != nil && !ctx.Conn().(*guard).inside() {
		d.fail(ctx, f)
		return
	}
	switch k {
	case surface.Models, surface.Model:
		d.listModels(ctx, v, key, path)
		return
	}
	if f := d.exchange(ctx, v, key, k, path); f != nil {
		d.fail(ctx, f)
	}
}

// admit checks the key where keys are set.
func (v *view) admit(authorization, xAPIKey []byte) (*keyring.Key, *surface.Failure) {
	if !v.keys.Asked {
		return nil, nil
	}
	k := v.keys.Find(string(authorization), string(xAPIKey))
	if name, ok := v.batches.inside(authorization); k == nil && ok {
		k = v.keys.Configured(name)
	}
	if k == nil {
		return nil, &surface.Failure{Status: 401, Type: "authentication_error", Code: "invalid_api_key", Reason: "auth",
			Message: "a valid API key is needed: Authorization: Bearer KEY"}
	}
	if k.Expired(time.Now()) {
		return nil, &surface.Failure{Status: 401, Type: "authentication_error", Code: "invalid_api_key", Reason: "auth",
			Message: fmt.Sprintf("key %q expired at %s", k.Name, k.Cfg.Expires)}
	}
	return k, nil
}

// exchange serves a request that goes to a worker.
func (d *Door) exchange(ctx *fasthttp.RequestCtx, v *view, k *keyring.Key, kd surface.Kind, path string) *surface.Failure {
	h := &ctx.Request.Header
	method := string(h.Method())
	if f := surface.NotTaken(method, surface.MethodsOf(kd, path)); f != nil {
		return f
	}
	g := ctx.Conn().(*guard)
	if d.parting(g) {
		ctx.SetConnectionClose()
	}
	var seen wire.Seen
	for name, value := range h.All() {
		seen.Take(name, value)
	}
	x := d.newExchange(v, g, &seen)
	x.asked.kind, x.asked.method, x.asked.path, x.asked.query = kd, method, path, string(ctx.URI().QueryString())
	x.asked.http10, x.close = !h.IsHTTP11(), h.ConnectionClose() || d.parting(g)
	x.payload.Body = ctx.Request.Body() // fasthttp's, until hijack takes it
	x.payload.Booked = x.g.takeBooked()
	k, refused := x.filtered(ctx, k)
	if refused != nil {
		return x.turnAway(refused)
	}
	x.pin = g.pinned(string(h.Peek(pinField)))
	if f := x.enter(&seen, k); f != nil {
		return x.turnAway(f)
	}
	if x.asked.streams() {
		newRelay(x).hijack(ctx)
		return nil
	}
	x.unary(&throughFasthttp{ctx})
	return nil
}

// newExchange begins a request whose head says what was seen.
func (d *common) newExchange(v *view, g *guard, seen *wire.Seen) *exchange {
	x := blank()
	x.d, x.v, x.g = d, v, g
	a := &x.asked
	a.wall = time.Now()
	a.start = int64(a.wall.Sub(d.epoch))
	a.client = v.trusted.client(g.peer(), seen.Forwarded)
	a.id, a.ctype, a.priority = surface.RequestID(seen.RequestID), "application/json", surface.Normal
	x.trace = beginTrace(v.traces, seen)
	return x
}

// enter reads the request, holds it to its key's limits, and enters it among
// those in flight.
func (x *exchange) enter(seen *wire.Seen, k *keyring.Key) *surface.Failure {
	x.asked.key = k
	x.logged = captureOf(x.d, &x.asked, x.payload.Body)
	x.asked.identify(k, seen)
	if f := x.read(seen, k); f != nil {
		return f
	}
	if x.pin != "" {
		if f := x.pinTo(x.pin); f != nil {
			return f
		}
	}
	x.asked.filtered(x.pass)
	if k != nil {
		if f := x.d.usage.Refuse(&k.Cfg, k.Live(), x.asked.wall); f != nil {
			return f
		}
		if f := k.Enter(x.asked.wall); f != nil {
			return f
		}
		prompt, expect := x.asked.estimate()
		x.booking.advance = prompt + expect
		k.Charge(x.booking.advance)
	}
	x.d.live.enlist(x)
	x.g.serve(x)
	x.asked.pool.Retries.Came(x.asked.start)
	return nil
}

// turnAway ends a request that is refused before it was enlisted.
func (x *exchange) turnAway(f *surface.Failure) *surface.Failure {
	x.d.memory.Give(x.payload.Booked)
	x.record.status, x.record.outcome, x.record.code = f.Status, "refused", f.Code
	x.tell()
	x.logged.end(x.d.id, &x.asked, &x.record)
	x.d.past.add(x)
	return f
}
