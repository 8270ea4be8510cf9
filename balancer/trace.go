package balancer

import (
	"time"

	"roundhouse/balancer/otlp"
	"roundhouse/balancer/wire"
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

// beginTrace starts a request's trace where traces are sent. A client's context
// is continued; one that is not to be sampled is handed on and not recorded.
func beginTrace(to *otlp.Exporter, seen *wire.Seen) *trace {
	if to == nil {
		return nil
	}
	t := &trace{to: to}
	if c, ok := otlp.Parse(seen.Traceparent); ok {
		t.Context, t.parent = c.Child(), c.Span
		if len(seen.Tracestate) <= 512 {
			t.state = string(seen.Tracestate)
		}
	} else {
		t.Context = otlp.New()
	}
	return t
}

// fields appends the context that a worker is asked under.
func (t *trace) fields(b []byte, worker string) []byte {
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

// finish sends the request's span. It holds names and figures, and no prompt.
func (t *trace) finish(a *asked, r *record) {
	if t == nil {
		return
	}
	failed := ""
	if r.outcome != "ok" && r.outcome != "client_error" {
		failed = r.outcome
	}
	t.endAttempt(failed)
	operation := operations[a.path]
	name := operation
	if name == "" {
		name = a.method
	}
	if a.model != "" {
		name += " " + a.model
	}
	list := []otlp.Attribute{
		otlp.Text("gen_ai.operation.name", operation), otlp.Text("gen_ai.provider.name", "roundhouse"), otlp.Text("gen_ai.request.model", a.model),
		otlp.Text("http.request.method", a.method), otlp.Text("url.path", a.path), otlp.Int("http.response.status_code", int64(r.status)),
		otlp.Text("roundhouse.request_id", a.id), otlp.Text("roundhouse.outcome", r.outcome), otlp.Seconds("roundhouse.queue_seconds", float64(r.queued)/1e9),
	}
	if n := a.peek.MaxTokens; n > 0 {
		list = append(list, otlp.Int("gen_ai.request.max_tokens", n))
	}
	if r.usage.Known {
		list = append(list, otlp.Int("gen_ai.usage.input_tokens", r.usage.Prompt), otlp.Int("gen_ai.usage.output_tokens", r.usage.Generated))
	} else if n := r.generated.Load(); n > 0 {
		list = append(list, otlp.Int("gen_ai.usage.output_tokens", n))
	}
	if r.first > a.start {
		list = append(list, otlp.Seconds("gen_ai.server.time_to_first_token", float64(r.first-a.start)/1e9))
	}
	if a.pool != nil {
		list = append(list, otlp.Text("roundhouse.pool", a.pool.Name))
	}
	if r.worker != "" {
		list = append(list, otlp.Text("roundhouse.worker", r.worker))
	}
	if a.route != nil {
		list = append(list, otlp.Text("roundhouse.route", a.route.cfg.Name))
	}
	if a.key != nil {
		list = append(list, otlp.Text("roundhouse.key", a.key.Name))
	}
	if r.resumes.Load() > 0 {
		list = append(list, otlp.Int("roundhouse.resumes", int64(r.resumes.Load())))
	}
	if failed != "" {
		list = append(list, otlp.Text("error.type", failed))
	}
	t.to.Take(otlp.Span{Context: t.Context, Parent: t.parent, State: t.state, Name: name, Kind: otlp.Server, Start: a.wall, End: time.Now(), Attributes: list, Error: failed})
}
