package balancer

import (
	"bytes"
	"errors"

	"github.com/valyala/fasthttp"

	"roundhouse/balancer/extend"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/surface"
	"roundhouse/plugins/pb"
)

// errFiltered ends a stream whose filter failed and must not be passed by.
var errFiltered = errors.New("a filter that rewrites answers failed")

var filterFailed = &surface.Failure{Status: 503, Type: "service_unavailable", Code: "filter_failed", Message: "a filter that rewrites answers is not available"}

// filtered shows a request that fasthttp has read to the filters.
func (x *exchange) filtered(ctx *fasthttp.RequestCtx, k *keyring.Key) (*keyring.Key, *surface.Failure) {
	if x.v.ext == nil {
		return k, nil
	}
	k, f := x.filter(ctx.RemoteAddr().String(), func(yield func(name, value string) bool) {
		for name, value := range ctx.Request.Header.All() {
			if bytes.IndexByte(name, '_') < 0 && !yield(string(name), string(value)) {
				return
			}
		}
	}, k)
	if f == nil && x.pass != nil && x.pass.Body != nil {
		ctx.Request.SetBody(x.payload.Body)
		x.payload.Body = ctx.Request.Body()
	}
	return k, f
}

// filter shows the request to the filters, takes over what they changed, and
// returns the key that it is accounted to.
func (x *exchange) filter(client string, headers func(yield func(name, value string) bool), k *keyring.Key) (*keyring.Key, *surface.Failure) {
	pass, refusal := x.v.ext.Begin(&extend.Request{ID: x.asked.id, Method: x.asked.method, Path: x.asked.path, Client: client, Body: x.payload.Body, Headers: headers})
	if refusal != nil {
		return k, &surface.Failure{Status: refusal.Status, Type: refusal.Type, Code: "filtered", Message: refusal.Message, Reason: "bad_request"}
	}
	if x.pass = pass; pass == nil {
		return k, nil
	}
	if pass.Body != nil {
		if more := int64(len(pass.Body) - len(x.payload.Body)); more > 0 {
			if !x.d.book(more) {
				return k, noMemory()
			}
			x.payload.Booked += more
		}
		x.payload.Body = pass.Body
	}
	if pass.Key != "" && (k == nil || k.Name != pass.Key) {
		k = x.v.keys.Named(pass.Key)
	}
	return k, nil
}

func noMemory() *surface.Failure {
	return &surface.Failure{Status: 503, Type: "service_unavailable", Code: "memory", Reason: "memory", RetryAfter: 1,
		Message: "the door holds as many bodies as it may; try again"}
}

// filtered takes the priority over that a filter has set.
func (a *asked) filtered(pass *extend.Pass) {
	if pass == nil {
		return
	}
	if p, ok := surface.PriorityOf(pass.Priority); ok {
		a.priority = p
	}
}

// filterFields appends the fields that filters set on the way to the worker.
func filterFields(b []byte, pass *extend.Pass) []byte {
	if pass == nil {
		return b
	}
	for _, h := range pass.Headers {
		if h[1] != "" {
			b = append(append(append(append(b, "\r\n"...), h[0]...), ": "...), h[1]...)
		}
	}
	return b
}

// rewrite lets the filters rewrite an answer that does not stream.
func rewrite(body []byte, pass *extend.Pass) ([]byte, *surface.Failure) {
	out, refusal := pass.Chunk(body, true)
	if refusal != nil {
		return nil, filterFailed
	}
	return out, nil
}

// askPolicy asks the pool's policy plugin, if it has one, for the order of its
// workers. It is outside the ledger's lock: what is full by the time of the choice is
// passed over there.
func (x *exchange) askPolicy() {
	name := x.asked.pool.Plugin.Load()
	if name == nil || *name == "" || x.v.ext == nil {
		return
	}
	workers := *x.asked.pool.Workers.Load()
	candidates := make([]*pb.Candidate, 0, len(workers))
	predicted := x.d.ledger.Predicted(nil, &x.asked.pool.Group, &x.booking.Ask)
	for i, w := range workers {
		if v := x.d.ledger.View(w.Acct, x.booking.Ask.Now); v.Ready && v.Ejected == "" {
			candidates = append(candidates, candidate(i, v, x.booking.Ask.Hits, predicted))
		}
	}
	req := &pb.Request{Id: x.asked.id, Pool: x.asked.pool.Name, Model: x.asked.model, Session: x.asked.session, Priority: surface.PriorityNames[x.asked.priority],
		PromptTokens: x.booking.Ask.Prompt, ExpectedOutputTokens: x.booking.Ask.Expect, Stream: x.asked.peek.Stream}
	if x.asked.route != nil {
		req.Route = x.asked.route.cfg.Name
	}
	if x.asked.key != nil {
		req.Key = x.asked.key.Name
	}
	x.booking.Ask.Order = x.booking.Ask.Order[:0]
	for _, id := range x.v.ext.Order(*name, req, candidates) {
		for _, w := range workers {
			if w.ID == id {
				x.booking.Ask.Order = append(x.booking.Ask.Order, w.Acct)
			}
		}
	}
}

// candidate is one worker's account as a policy plugin reads it.
func candidate(i int, v ledger.View, hits []int32, predicted []float64) *pb.Candidate {
	c := &pb.Candidate{
		Worker: v.ID, CapacityTokens: v.Capacity, ChargedTokens: v.KV, ForeignTokens: v.Foreign, PrefillTokens: v.Prefill,
		InFlight: int32(v.InFlight), TokensPerSecond: v.Decode, ReportAgeSeconds: -1,
	}
	if i < len(hits) {
		c.PrefixTokens = int64(hits[i])
	}
	if v.Rate > 0 && i < len(predicted) { // else nothing was learned yet
		c.PredictedTtftSeconds = predicted[i]
	}
	if v.ReportAge >= 0 {
		c.ReportAgeSeconds = float64(v.ReportAge) / 1e9
	}
	return c
}
