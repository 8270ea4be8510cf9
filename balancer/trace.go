package balancer

import (
	"time"

	"roundhouse/balancer/otlp"
)

// trace is one request's spans: the door's own, and one for each worker that
// was asked.
type trace struct {
	otlp.Context
	parent [8]byte
	state  string // the tracestate that came with it
	to     *otlp.Exporter

	attempt otlp.Context // of the worker that is asked now
	asked   time.Time
	worker  string
}

// begin starts a request's trace where traces are sent. A client's context is
// gone on with; one that is not to be sampled is handed on and not recorded.
func (x *exchange) begin(traceparent, tracestate []byte) {
	if x.v.traces == nil {
		return
	}
	t := &trace{to: x.v.traces}
	if c, ok := otlp.Parse(traceparent); ok {
		t.Context, t.parent = c.Child(), c.Span
		if len(tracestate) <= 512 {
			t.state = string(tracestate)
		}
	} else {
		t.Context = otlp.New()
	}
	x.trace = t
}

// traceFields appends the context that a worker is asked under.
func (x *exchange) traceFields(b []byte, worker string) []byte {
	t := x.trace
	if t == nil {
		return b
	}
	t.endAttempt("another worker was asked")
	t.attempt, t.asked, t.worker = t.Child(), time.Now(), worker
	b = t.attempt.Append(append(b, "\r\ntraceparent: "...))
	if t.state != "" {
		b = append(append(b, "\r\ntracestate: "...), t.state...)
	}
	return b
}

// endAttempt ends the span of the worker that was asked last.
func (t *trace) endAttempt(failed string) {
	if t.worker == "" {
		return
	}
	t.to.Take(otlp.Span{
		Context: t.attempt, Parent: t.Span, State: t.state, Name: "ask worker", Kind: otlp.Client, Start: t.asked, End: time.Now(), Error: failed,
		Attributes: []otlp.Attribute{otlp.Text("roundhouse.worker", t.worker)},
	})
	t.worker = ""
}

// operations are the GenAI operations of the paths that have one.
var operations = map[string]string{
	"/v1/chat/completions": "chat", "/v1/messages": "chat", "/v1/responses": "chat", "/v1/completions": "text_completion", "/v1/embeddings": "embeddings",
}

// endTrace sends the request's span. It holds names and figures, and no prompt.
func (x *exchange) endTrace() {
	t := x.trace
	if t == nil {
		return
	}
	x.trace = nil
	failed := ""
	if x.outcome != "ok" && x.outcome != "client_error" {
		failed = x.outcome
	}
	t.endAttempt(failed)
	operation := operations[x.path]
	name := operation
	if name == "" {
		name = x.method
	}
	if x.model != "" {
		name += " " + x.model
	}
	a := []otlp.Attribute{
		otlp.Text("gen_ai.operation.name", operation), otlp.Text("gen_ai.provider.name", "roundhouse"), otlp.Text("gen_ai.request.model", x.model),
		otlp.Text("http.request.method", x.method), otlp.Text("url.path", x.path), otlp.Int("http.response.status_code", int64(x.status)),
		otlp.Text("roundhouse.request_id", x.id), otlp.Text("roundhouse.outcome", x.outcome), otlp.Seconds("roundhouse.queue_seconds", float64(x.queued)/1e9),
	}
	if n := x.peek.MaxTokens; n > 0 {
		a = append(a, otlp.Int("gen_ai.request.max_tokens", n))
	}
	if x.usage.known {
		a = append(a, otlp.Int("gen_ai.usage.input_tokens", x.usage.prompt), otlp.Int("gen_ai.usage.output_tokens", x.usage.generated))
	} else if n := x.generated.Load(); n > 0 {
		a = append(a, otlp.Int("gen_ai.usage.output_tokens", n))
	}
	if x.first > x.start {
		a = append(a, otlp.Seconds("gen_ai.server.time_to_first_token", float64(x.first-x.start)/1e9))
	}
	if x.pool != nil {
		a = append(a, otlp.Text("roundhouse.pool", x.pool.name))
	}
	if w := x.worker.Load(); w != nil {
		a = append(a, otlp.Text("roundhouse.worker", w.id))
	}
	if x.route != nil {
		a = append(a, otlp.Text("roundhouse.route", x.route.cfg.Name))
	}
	if x.key != nil {
		a = append(a, otlp.Text("roundhouse.key", x.key.name))
	}
	if x.resume > 0 {
		a = append(a, otlp.Int("roundhouse.resumes", int64(x.resume)))
	}
	if failed != "" {
		a = append(a, otlp.Text("error.type", failed))
	}
	t.to.Take(otlp.Span{Context: t.Context, Parent: t.parent, State: t.state, Name: name, Kind: otlp.Server, Start: x.wall, End: time.Now(), Attributes: a, Error: failed})
}

// openTraces is the exporter for an endpoint: the one that is there, where the
// endpoint has not changed.
func (d *Door) openTraces(old *view, endpoint string) *otlp.Exporter {
	switch {
	case endpoint == old.set.OTLP.Endpoint && old.traces != nil:
		return old.traces
	case endpoint == "":
		return nil
	}
	return otlp.Open(endpoint, d.opts.Build, []otlp.Attribute{
		otlp.Text("service.name", "roundhouse"), otlp.Text("service.version", d.opts.Build), otlp.Text("service.instance.id", d.id),
	}, d.log)
}
