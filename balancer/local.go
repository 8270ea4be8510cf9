package balancer

import (
	"encoding/json"
	"sort"
	"strings"

	"roundhouse/balancer/keyring"
	"roundhouse/balancer/surface"

	"github.com/valyala/fasthttp"
)

// health answers 200 while some pool can serve or park.
func (d *common) health(ctx *fasthttp.RequestCtx, v *view) {
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
func (d *common) listModels(ctx *fasthttp.RequestCtx, v *view, k *keyring.Key, path string) {
	if m := string(ctx.Method()); m != "GET" && m != "HEAD" {
		d.fail(ctx, surface.NotTaken(m, surface.MethodsOf(surface.Models, path)))
		return
	}
	names := map[string]*target{}
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

func (d *common) card(name string, t *target) modelCard {
	c := modelCard{ID: name, Object: "model", Created: d.epoch.Unix(), OwnedBy: "roundhouse"}
	if t == nil {
		return c
	}
	var least int64
	for _, p := range t.pools {
		for _, w := range *p.Workers.Load() {
			if v := d.ledger.View(w.Acct, d.now()); v.MaxLen > 0 && (least == 0 || v.MaxLen < least) {
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
