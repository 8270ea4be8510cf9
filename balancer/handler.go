package balancer

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/valyala/fasthttp"

	"encoding/json"
	"net"
	"sort"
	"strconv"

	"roundhouse/balancer/keyring"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// handle takes one request from fasthttp. A panic ends its request alone.
func (d *common) handle(ctx *fasthttp.RequestCtx) {
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

// exchange serves a request that goes to a worker.
func (d *common) exchange(ctx *fasthttp.RequestCtx, v *snapshot, k *keyring.Key, kd surface.Kind, path string) *surface.Failure {
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

// health answers 200 while some pool can serve or park.
func (d *common) health(ctx *fasthttp.RequestCtx, v *snapshot) {
	ctx.SetContentType("application/json")
	ok := false
	for _, p := range v.pools {
		ok = ok || len(*p.Workers.Load()) > 0
	}
	switch {
	case d.draining.Load():
		ctx.SetStatusCode(503)
		ctx.SetBodyString(`{"status":"shutting_down"}`)
	case d.seeking.Load():
		ctx.SetStatusCode(503)
		ctx.SetBodyString(`{"status":"starting"}`)
	case !ok:
		ctx.SetStatusCode(503)
		ctx.SetBodyString(`{"status":"no_workers"}`)
	default:
		ctx.SetBodyString(`{"status":"ok"}`)
	}
}

// modelCard is one entry of /v1/models.
type modelCard struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	MaxLen  *int64 `json:"max_model_len,omitempty"`
}

// listModels answers /v1/models and /v1/models/{id}: the union of what pools
// and routes serve, as far as the key may see it.
func (d *common) listModels(ctx *fasthttp.RequestCtx, v *snapshot, k *keyring.Key, path string) {
	if m := string(ctx.Method()); m != "GET" && m != "HEAD" {
		d.fail(ctx, surface.NotTaken(m, surface.MethodsOf(surface.Models, path)))
		return
	}
	names := map[string]*serving{}
	for name, t := range v.models {
		names[name] = t
	}
	for name, r := range v.routes {
		names[name] = nil
		for _, t := range r.cfg.Targets {
			if m := v.models[t.Model]; m != nil {
				names[name] = m
			}
		}
	}
	cards := []modelCard{}
	for name, t := range names {
		if k == nil || k.Allows(name) && (t == nil || k.AllowsPool(t.first(k).Name)) {
			cards = append(cards, d.card(name, t))
		}
	}
	sort.Slice(cards, func(i, j int) bool { return cards[i].ID < cards[j].ID })
	ctx.SetContentType("application/json")
	if id, one := strings.CutPrefix(path, surface.ModelPrefix); one {
		for i := range cards {
			if cards[i].ID == id {
				writeJSON(ctx, cards[i])
				return
			}
		}
		d.fail(ctx, v.unknown(id))
		return
	}
	writeJSON(ctx, struct {
		Object string      `json:"object"`
		Data   []modelCard `json:"data"`
	}{"list", cards})
}

func (d *common) card(name string, t *serving) modelCard {
	c := modelCard{ID: name, Object: "model", Created: d.epoch.Unix(), OwnedBy: "roundhouse"}
	if t == nil {
		return c
	}
	var least int64
	for _, p := range t.pools {
		for _, w := range *p.Workers.Load() {
			if v := d.ledger.Account(w.Acct, d.now()); v.MaxLen > 0 && (least == 0 || v.MaxLen < least) {
				least = v.MaxLen
			}
		}
	}
	if least > 0 {
		c.MaxLen = &least
	}
	return c
}

func writeJSON(ctx *fasthttp.RequestCtx, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: an answer cannot be encoded: " + err.Error())
	}
	ctx.SetBody(b)
}

// throughFasthttp answers where fasthttp has read the request.
type throughFasthttp struct{ ctx *fasthttp.RequestCtx }

func (t *throughFasthttp) room() []byte { return nil }

func (t *throughFasthttp) reply(x *exchange, r reply, body []byte) {
	h := &t.ctx.Response.Header
	t.ctx.SetStatusCode(x.record.status)
	if r.ctype != "" {
		t.ctx.SetContentType(r.ctype)
	}
	if r.after != "" {
		h.Set("retry-after", r.after)
	}
	if r.disposition != "" {
		h.Set("content-disposition", r.disposition)
	}
	t.mark(x)
	t.ctx.Response.SetBodyRaw(body)
}

// mark sets the fields that every answer of an exchange carries.
func (t *throughFasthttp) mark(x *exchange) {
	h := &t.ctx.Response.Header
	h.Set("x-request-id", x.asked.id)
	if w := x.booking.worker.Load(); w != nil {
		h.Set("x-roundhouse-worker", w.ID)
	}
	h.Set("x-roundhouse-queue-ms", strconv.FormatInt(x.record.queued/1e6, 10))
	for _, f := range x.record.replyFields(x.pass) {
		h.Set(f[0], f[1])
	}
}

func (t *throughFasthttp) refuse(x *exchange, f *surface.Failure) {
	x.refused(f)
	counted := *f
	counted.Reason = "" // it was counted with its pool
	x.d.fail(t.ctx, &counted)
	t.mark(x)
}

func (t *throughFasthttp) lines() []byte { return corsLines(t.ctx) }

func (t *throughFasthttp) passed(keep bool) {
	g := t.ctx.Conn().(*guard)
	t.ctx.HijackSetNoResponse(true)
	t.ctx.Hijack(func(net.Conn) {
		if keep {
			go g.d.serve(g)
			return
		}
		g.Close()
	})
}

func (t *throughFasthttp) end(x *exchange, f *surface.Failure) {
	if f != nil {
		x.d.fail(t.ctx, f)
	}
	t.ctx.SetConnectionClose()
}
