package balancer

import (
	"errors"

	"github.com/valyala/fasthttp"

	"roundhouse/balancer/extend"
	"roundhouse/balancer/ledger"
	"roundhouse/configs"
	"roundhouse/plugins/pb"
)

// errFiltered ends a stream whose filter failed and must not be passed by.
var errFiltered = errors.New("a filter that rewrites answers failed")

var filterFailed = &failure{status: 503, typ: "service_unavailable", code: "filter_failed", message: "a filter that rewrites answers is not available"}

// filtered shows the request to the filters, takes over what they changed, and
// returns the key that it is accounted to.
func (x *exchange) filtered(ctx *fasthttp.RequestCtx, k *key) (*key, *failure) {
	if x.v.ext == nil {
		return k, nil
	}
	pass, refusal := x.v.ext.Begin(&extend.Request{
		ID: x.id, Method: x.method, Path: x.path, Client: ctx.RemoteAddr().String(), Body: x.body,
		Headers: func(yield func(name, value string) bool) {
			for name, value := range ctx.Request.Header.All() {
				if !yield(string(name), string(value)) {
					return
				}
			}
		},
	})
	if refusal != nil {
		return k, &failure{status: refusal.Status, typ: refusal.Type, code: "filtered", message: refusal.Message, reason: "bad_request"}
	}
	if x.pass = pass; pass == nil {
		return k, nil
	}
	if pass.Body != nil {
		if more := int64(len(pass.Body) - len(x.body)); more > 0 {
			if !x.d.book(more) {
				return k, &failure{status: 503, typ: "service_unavailable", code: "memory", reason: "memory", retryAfter: 1,
					message: "the door holds as many bodies as it may; try again"}
			}
			x.booked += more
		}
		ctx.Request.SetBody(pass.Body)
		x.body = ctx.Request.Body()
	}
	if pass.Key != "" && (k == nil || k.name != pass.Key) {
		k = x.v.keys.named(pass.Key)
	}
	return k, nil
}

// filteredPriority takes the priority over that a filter has set.
func (x *exchange) filteredPriority() {
	if x.pass == nil {
		return
	}
	if p, ok := priorityOf(x.pass.Priority); ok {
		x.priority = p
	}
}

// named is the configured key of that name, or one without limits: a filter that
// knows keys of its own accounts to them.
func (r *keyring) named(name string) *key {
	for _, k := range r.keys {
		if k.name == name {
			return k
		}
	}
	return &key{name: name, use: &use{}, cfg: configs.Key{Name: name, Models: []string{"*"}, Weight: 1}}
}

// filterFields appends the fields that filters set on the way to the worker.
func (x *exchange) filterFields(b []byte) []byte {
	if x.pass == nil {
		return b
	}
	for _, h := range x.pass.Headers {
		if h[1] != "" {
			b = append(append(append(append(b, "\r\n"...), h[0]...), ": "...), h[1]...)
		}
	}
	return b
}

// replyFields are the fields that filters set on the way to the client.
func (x *exchange) replyFields() [][2]string {
	if x.pass == nil {
		return nil
	}
	worker := ""
	if w := x.worker.Load(); w != nil {
		worker = w.id
	}
	return x.pass.Respond(x.status, worker)
}

// rewrite lets the filters rewrite an answer that does not stream.
func (x *exchange) rewrite(body []byte) ([]byte, *failure) {
	out, refusal := x.pass.Chunk(body, true)
	if refusal != nil {
		return nil, filterFailed
	}
	return out, nil
}

// rewrite lets the filters rewrite the whole events that o holds.
func (s *stream) rewrite(o *outBuf) error {
	if !s.x.pass.WantsChunks() || len(o.b) == chunkHead {
		return nil
	}
	out, refusal := s.x.pass.Chunk(o.b[chunkHead:], s.done)
	if refusal != nil {
		return errFiltered
	}
	o.b = append(o.b[:chunkHead], out...)
	return nil
}

// tellFilters says how the request ended.
func (x *exchange) tellFilters() {
	if x.pass == nil {
		return
	}
	seconds := func(from, to int64) float64 {
		if to < from || from == 0 {
			return 0
		}
		return float64(to-from) / 1e9
	}
	o := &extend.Outcome{Status: x.status, Outcome: x.outcome, Prompt: x.usage.prompt, Cached: max(x.usage.cached, 0), Generated: x.generated.Load(),
		Queue: float64(x.queued) / 1e9, TTFT: seconds(x.start, x.first), Duration: seconds(x.start, x.d.now())}
	if x.usage.known {
		o.Generated = x.usage.generated
	}
	if w := x.worker.Load(); w != nil {
		o.Worker = w.id
	}
	x.pass.End(o)
}

// askPolicy asks the pool's policy plugin, if it has one, for the order of its
// workers. It is outside the ledger's lock: what is full by the time of the choice is
// passed over there.
func (x *exchange) askPolicy() {
	name := x.pool.plugin.Load()
	if name == nil || *name == "" || x.v.ext == nil {
		return
	}
	workers := *x.pool.workers.Load()
	candidates := make([]*pb.Candidate, 0, len(workers))
	predicted := x.d.ledger.Predicted(nil, &x.pool.group, &x.ask)
	for i, w := range workers {
		if v := x.d.ledger.View(w.acct, x.ask.Now); v.Ready && v.Ejected == "" {
			candidates = append(candidates, x.candidate(i, v, predicted))
		}
	}
	req := &pb.Request{Id: x.id, Pool: x.pool.name, Model: x.model, Session: x.session, Priority: priorityNames[x.priority],
		PromptTokens: x.ask.Prompt, ExpectedOutputTokens: x.ask.Expect, Stream: x.peek.Stream}
	if x.route != nil {
		req.Route = x.route.cfg.Name
	}
	if x.key != nil {
		req.Key = x.key.name
	}
	x.ask.Order = x.ask.Order[:0]
	for _, id := range x.v.ext.Order(*name, req, candidates) {
		for _, w := range workers {
			if w.id == id {
				x.ask.Order = append(x.ask.Order, w.acct)
			}
		}
	}
}

// candidate is one worker's account as a policy plugin reads it.
func (x *exchange) candidate(i int, v ledger.View, predicted []float64) *pb.Candidate {
	c := &pb.Candidate{
		Worker: v.ID, CapacityTokens: v.Capacity, ChargedTokens: v.KV, ForeignTokens: v.Foreign, PrefillTokens: v.Prefill,
		InFlight: int32(v.InFlight), TokensPerSecond: v.Decode, ReportAgeSeconds: -1,
	}
	if x.ask.Hits != nil && i < len(x.ask.Hits) {
		c.PrefixTokens = int64(x.ask.Hits[i])
	}
	if v.Rate > 0 && i < len(predicted) { // else nothing was learned yet
		c.PredictedTtftSeconds = predicted[i]
	}
	if v.ReportAge >= 0 {
		c.ReportAgeSeconds = float64(v.ReportAge) / 1e9
	}
	return c
}
