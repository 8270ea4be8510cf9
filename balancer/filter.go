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

// filtered shows a request that fasthttp has read to the filters.
func (x *exchange) filtered(ctx *fasthttp.RequestCtx, k *key) (*key, *failure) {
	if x.v.ext == nil {
		return k, nil
	}
	k, f := x.filter(ctx.RemoteAddr().String(), func(yield func(name, value string) bool) {
		for name, value := range ctx.Request.Header.All() {
			if !yield(string(name), string(value)) {
				return
			}
		}
	}, k)
	if f == nil && x.pass != nil && x.pass.Body != nil {
		ctx.Request.SetBody(x.payload.body)
		x.payload.body = ctx.Request.Body()
	}
	return k, f
}

// filter shows the request to the filters, takes over what they changed, and
// returns the key that it is accounted to.
func (x *exchange) filter(client string, headers func(yield func(name, value string) bool), k *key) (*key, *failure) {
	pass, refusal := x.v.ext.Begin(&extend.Request{ID: x.asked.id, Method: x.asked.method, Path: x.asked.path, Client: client, Body: x.payload.body, Headers: headers})
	if refusal != nil {
		return k, &failure{status: refusal.Status, typ: refusal.Type, code: "filtered", message: refusal.Message, reason: "bad_request"}
	}
	if x.pass = pass; pass == nil {
		return k, nil
	}
	if pass.Body != nil {
		if more := int64(len(pass.Body) - len(x.payload.body)); more > 0 {
			if !x.d.book(more) {
				return k, noMemory()
			}
			x.payload.booked += more
		}
		x.payload.body = pass.Body
	}
	if pass.Key != "" && (k == nil || k.name != pass.Key) {
		k = x.v.keys.named(pass.Key)
	}
	return k, nil
}

func noMemory() *failure {
	return &failure{status: 503, typ: "service_unavailable", code: "memory", reason: "memory", retryAfter: 1,
		message: "the door holds as many bodies as it may; try again"}
}

// filtered takes the priority over that a filter has set.
func (a *asked) filtered(pass *extend.Pass) {
	if pass == nil {
		return
	}
	if p, ok := priorityOf(pass.Priority); ok {
		a.priority = p
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

// replyFields are the fields that filters set on the way to the client.
func (r *record) replyFields(pass *extend.Pass) [][2]string {
	if pass == nil {
		return nil
	}
	return pass.Respond(r.status, r.worker)
}

// rewrite lets the filters rewrite an answer that does not stream.
func rewrite(body []byte, pass *extend.Pass) ([]byte, *failure) {
	out, refusal := pass.Chunk(body, true)
	if refusal != nil {
		return nil, filterFailed
	}
	return out, nil
}

// rewrite lets the filters rewrite the whole events that o holds.
func (s *relay) rewrite(o *outBuf) error {
	if !s.x.pass.WantsChunks() || len(o.B) == chunkHead {
		return nil
	}
	out, refusal := s.x.pass.Chunk(o.B[chunkHead:], s.answer.Done())
	if refusal != nil {
		return errFiltered
	}
	o.B = append(o.B[:chunkHead], out...)
	return nil
}

// told is the record as filters are told it.
func (r *record) told(start int64) *extend.Outcome {
	o := &extend.Outcome{Status: r.status, Outcome: r.outcome, Worker: r.worker, Prompt: r.usage.Prompt, Cached: max(r.usage.Cached, 0),
		Generated: r.output(), Queue: float64(r.queued) / 1e9, Duration: float64(r.ended-start) / 1e9}
	if r.first > start {
		o.TTFT = float64(r.first-start) / 1e9
	}
	return o
}

// askPolicy asks the pool's policy plugin, if it has one, for the order of its
// workers. It is outside the ledger's lock: what is full by the time of the choice is
// passed over there.
func (x *exchange) askPolicy() {
	name := x.asked.pool.plugin.Load()
	if name == nil || *name == "" || x.v.ext == nil {
		return
	}
	workers := *x.asked.pool.workers.Load()
	candidates := make([]*pb.Candidate, 0, len(workers))
	predicted := x.d.ledger.Predicted(nil, &x.asked.pool.group, &x.booking.ask)
	for i, w := range workers {
		if v := x.d.ledger.View(w.acct, x.booking.ask.Now); v.Ready && v.Ejected == "" {
			candidates = append(candidates, candidate(i, v, x.booking.ask.Hits, predicted))
		}
	}
	req := &pb.Request{Id: x.asked.id, Pool: x.asked.pool.name, Model: x.asked.model, Session: x.asked.session, Priority: priorityNames[x.asked.priority],
		PromptTokens: x.booking.ask.Prompt, ExpectedOutputTokens: x.booking.ask.Expect, Stream: x.asked.peek.Stream}
	if x.asked.route != nil {
		req.Route = x.asked.route.cfg.Name
	}
	if x.asked.key != nil {
		req.Key = x.asked.key.name
	}
	x.booking.ask.Order = x.booking.ask.Order[:0]
	for _, id := range x.v.ext.Order(*name, req, candidates) {
		for _, w := range workers {
			if w.id == id {
				x.booking.ask.Order = append(x.booking.ask.Order, w.acct)
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
