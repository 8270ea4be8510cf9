package balancer

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
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
	if len(v.keys.Keys) == 0 {
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
	x.pin = g.pinned(h)
	if f := x.enter(&seen, k); f != nil {
		return x.turnAway(f)
	}
	if x.asked.streams() {
		x.s = newRelay(x)
		x.s.hijack(ctx)
		return nil
	}
	x.unary(&throughFasthttp{ctx})
	return nil
}

// newExchange begins a request whose head says what was seen.
func (d *Door) newExchange(v *view, g *guard, seen *wire.Seen) *exchange {
	x := blank()
	x.d, x.v, x.g = d, v, g
	a := &x.asked
	a.wall = time.Now()
	a.start = int64(a.wall.Sub(d.epoch))
	a.client = v.trusted.client(g.peer(), seen.Forwarded)
	a.id, a.ctype, a.priority = requestID(seen.RequestID), "application/json", surface.Normal
	x.trace = beginTrace(v.traces, seen)
	return x
}

// enter reads the request, holds it to its key's limits, and enters it among
// those in flight.
func (x *exchange) enter(seen *wire.Seen, k *keyring.Key) *surface.Failure {
	x.asked.key = k
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
		if f := k.Enter(x.asked.wall); f != nil {
			return f
		}
		prompt, expect := x.asked.estimate()
		x.booking.advance = prompt + expect
		k.Charge(x.booking.advance)
	}
	x.d.enlist(x)
	x.g.serve(x)
	x.asked.pool.Retries.Came(x.asked.start)
	return nil
}

// turnAway ends a request that is refused before it was enlisted.
func (x *exchange) turnAway(f *surface.Failure) *surface.Failure {
	x.d.memory.Give(x.payload.Booked)
	x.record.status, x.record.outcome, x.record.code = f.Status, "refused", f.Code
	x.tell()
	x.d.past.add(x)
	return f
}

// read takes what must be known of a request out of its head and body.
func (x *exchange) read(seen *wire.Seen, k *keyring.Key) *surface.Failure {
	if enc := seen.Encoding; len(enc) > 0 && string(enc) != "identity" {
		return &surface.Failure{Status: 415, Type: "invalid_request_error", Code: "unsupported_encoding", Reason: "bad_request",
			Message: "request bodies must come without Content-Encoding"}
	}
	if f := x.asked.readPriority(string(seen.Priority), k); f != nil {
		return f
	}
	if a := seen.Accept; len(a) > 0 && len(a) < 200 {
		x.asked.accept = string(a)
	}
	switch x.asked.kind {
	case surface.Form:
		if f := x.asked.readForm(seen, x.payload.Body); f != nil {
			return f
		}
		if f := x.asked.find(x.d, x.v, x.pass, x.payload.Body, string(seen.Session)); f != nil {
			return f
		}
		if name := x.asked.peek.Model; name != "" && name != x.asked.model {
			return surface.BadRequest("model", "aliases and routes are not served with multipart bodies; ask for %q", x.asked.model)
		}
		return x.asked.permit(k)
	case surface.Stored:
		return x.readHeld()
	case surface.Pass:
		return x.through.read(seen, k)
	}
	if f := checkType(seen.Type); f != nil {
		return f
	}
	if err := wire.PeekBody(x.payload.Body, &x.asked.peek); err != nil {
		var be *wire.BodyError
		errors.As(err, &be)
		return surface.BadRequest(be.Param, "%s", err.Error())
	}
	if x.asked.peek.Resume {
		return surface.BadRequest("roundhouse_resume", "the field \"roundhouse_resume\" is the door's own")
	}
	if f := x.asked.find(x.d, x.v, x.pass, x.payload.Body, string(seen.Session)); f != nil {
		return f
	}
	if x.asked.peek.Session != "" && x.asked.path == surface.ResponsesPath {
		if f := x.goTo(x.asked.peek.Session); f != nil {
			return f
		}
	}
	return x.asked.permit(k)
}

// checkType accepts JSON in UTF-8, and a body that does not say what it is.
func checkType(given []byte) *surface.Failure {
	if len(given) == 0 || string(given) == "application/json" {
		return nil
	}
	ct := strings.ToLower(string(given))
	if !strings.HasPrefix(ct, "application/json") {
		return surface.BadRequest("", "the content type must be application/json")
	}
	if strings.Contains(ct, "charset=") && !strings.Contains(ct, "utf-8") {
		return surface.BadRequest("", "the body must be UTF-8")
	}
	return nil
}

// permit checks that the key may use what was asked for; the answer does not
// tell a model that is hidden from one that is not there.
func (a *asked) permit(k *keyring.Key) *surface.Failure {
	if k == nil || k.Allows(a.model) && a.route == nil || a.route != nil && (k.Allows(a.route.cfg.Name) || k.Allows(a.model)) {
		return nil
	}
	return surface.UnknownModel(a.peek.Model)
}

func (a *asked) readPriority(asked string, k *keyring.Key) *surface.Failure {
	if k != nil && k.Cfg.Priority != "" {
		a.priority, _ = surface.PriorityOf(k.Cfg.Priority)
	}
	if asked == "" {
		return nil
	}
	p, ok := surface.PriorityOf(asked)
	if !ok {
		return surface.BadRequest("x-roundhouse-priority", "x-roundhouse-priority must be high, normal or low")
	}
	a.priority = max(a.priority, p)
	return nil
}

// requestID takes a client's id where it is a plain one, else makes one.
func requestID(given []byte) string {
	if s := string(given); surface.ValidID(s) {
		return s
	}
	var b [16]byte
	for i := 0; i < 16; i += 8 {
		v := rand.Uint64()
		for j := range 8 {
			b[i+j] = byte(v >> (8 * j))
		}
	}
	return hex.EncodeToString(b[:])
}

// fail answers with an error that needs no exchange.
func (d *Door) fail(ctx *fasthttp.RequestCtx, f *surface.Failure) {
	if f.Reason != "" {
		d.metrics.Refused("", f.Reason)
		d.lobby.Refused(f.Reason)
	}
	ctx.Response.Reset()
	d.cors(ctx, d.current())
	ctx.Response.Header.Set("x-request-id", requestID(ctx.Request.Header.Peek("X-Request-Id")))
	if f.RetryAfter > 0 {
		ctx.Response.Header.Set("retry-after", strconv.Itoa(f.RetryAfter))
	}
	if f.Allow != "" {
		ctx.Response.Header.Set("allow", f.Allow)
	}
	if f.Status == 401 {
		ctx.Response.Header.Set("www-authenticate", "Bearer")
	}
	ctx.SetStatusCode(f.Status)
	ctx.SetContentType("application/json")
	ctx.SetBody(f.JSON(string(ctx.Path())))
}

// refuseHead answers what fasthttp would not read though the guard let it
// through; the connection ends with it.
func (d *Door) refuseHead(ctx *fasthttp.RequestCtx, err error) {
	he := &wire.HeadError{Status: 400, What: "this is not a valid HTTP request"}
	if errors.Is(err, fasthttp.ErrBodyTooLarge) {
		he = &wire.HeadError{Status: 413, What: "the body is longer than this door takes"}
	}
	d.fail(ctx, headFailure(he))
	ctx.SetConnectionClose()
}

func headFailure(he *wire.HeadError) *surface.Failure {
	f := &surface.Failure{Status: he.Status, Type: "invalid_request_error", Code: "invalid_http", Message: he.What, Reason: "bad_request"}
	if he.Status == 405 {
		f.Allow = surface.AllMethods
	}
	if he.Status == 503 {
		f.Type, f.Code, f.Reason, f.RetryAfter = "service_unavailable", "memory", "memory", 1
	}
	return f
}

// refusal is the whole answer to a request that the guard refuses.
func (d *Door) refusal(he *wire.HeadError) []byte {
	return d.alone(headFailure(he), "", requestID(nil), true)
}

// alone is the whole answer to a request that is refused before there is an
// exchange for it.
func (d *Door) alone(f *surface.Failure, path, id string, close bool) []byte {
	if f.Reason != "" {
		d.metrics.Refused("", f.Reason)
		d.lobby.Refused(f.Reason)
	}
	body := f.JSON(path)
	b := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nx-request-id: %s\r\n",
		f.Status, fasthttp.StatusMessage(f.Status), len(body), id)
	if f.RetryAfter > 0 {
		b = fmt.Appendf(b, "retry-after: %d\r\n", f.RetryAfter)
	}
	if f.Allow != "" {
		b = fmt.Appendf(b, "allow: %s\r\n", f.Allow)
	}
	if f.Status == 401 {
		b = append(b, "www-authenticate: Bearer\r\n"...)
	}
	if close {
		b = append(b, "connection: close\r\n"...)
	}
	return append(append(b, "\r\n"...), body...)
}

// cors answers to pages of the origins that are allowed.
func (d *Door) cors(ctx *fasthttp.RequestCtx, v *view) {
	allowed := v.set.Door.CORS.Origins
	if len(allowed) == 0 {
		return
	}
	origin := string(ctx.Request.Header.Peek("Origin"))
	for _, o := range allowed {
		if o == "*" || o == origin && origin != "" {
			h := &ctx.Response.Header
			h.Set("access-control-allow-origin", o)
			h.Set("vary", "Origin")
			h.Set("access-control-expose-headers", "x-request-id, x-roundhouse-worker, x-roundhouse-queue-ms, retry-after")
			h.Set("access-control-allow-methods", "GET, POST, DELETE, OPTIONS")
			h.Set("access-control-allow-headers", askedHeaders(ctx.Request.Header.Peek("Access-Control-Request-Headers")))
			h.Set("access-control-max-age", "600")
			return
		}
	}
}

// plainHeaders are those that a page may send where it does not ask for others.
const plainHeaders = "authorization, content-type, x-api-key, x-request-id, x-session-id, x-roundhouse-priority"

// askedHeaders are the fields that a preflight asks for, which is allowed: clients for
// browsers send many of their own, and the door passes none on that it does not know.
func askedHeaders(asked []byte) string {
	if len(asked) == 0 || len(asked) > 4096 {
		return plainHeaders
	}
	for _, c := range asked {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != ',' && c != ' ' {
			return plainHeaders
		}
	}
	return string(asked)
}
