package balancer

import (
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"roundhouse/balancer/control"
	"roundhouse/balancer/lines"
	"roundhouse/balancer/memory"
	"roundhouse/balancer/otlp"
	"roundhouse/balancer/requestlog"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
	"roundhouse/configs"
)

// logAccess writes one line for a request that has ended: sizes and times, no
// prompt, no answer, no key. It has the form of the rest of the log, and is
// encoded here because that costs no allocation.
func logAccess(to io.Writer, as *configs.Log, a *asked, r *record) {
	if to == nil || as.Level > slog.LevelInfo {
		return
	}
	lent := accessLines.Get().(*[]byte)
	defer accessLines.Put(lent)
	l := lines.Begin((*lent)[:0], as.Format == "json", a.wall.Add(time.Duration(r.ended-a.start)))
	l.Text("request", a.id)
	if a.client.IsValid() {
		l.Name("client")
		l.Quoted(func(b []byte) []byte { return a.client.AppendTo(b) })
	}
	l.Text("path", a.path)
	l.Number("status", int64(r.status))
	l.Text("outcome", r.outcome)
	l.Text("pool", a.pool.Name)
	l.Text("worker", r.worker)
	l.Text("model", a.model)
	l.Seconds("seconds", r.ended-a.start)
	l.Seconds("queue_seconds", r.queued)
	if r.first > 0 {
		l.Seconds("ttft_seconds", r.first-a.start)
	}
	if r.usage.Known {
		l.Number("prompt_tokens", r.usage.Prompt)
		l.Number("cached_tokens", max(0, r.usage.Cached))
		l.Number("generated_tokens", r.usage.Generated)
	}
	if a.key != nil {
		l.Text("key", a.key.Name)
	}
	if r.resumes.Load() > 0 {
		l.Number("resumes", int64(r.resumes.Load()))
	}
	*lent = l.End()
	to.Write(*lent)
}

// accessLines are lent for encoding a line.
var accessLines = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

// capture gathers what the log of requests writes of one; nil: nothing is written. Its
// memory is booked; where there is none left, texts end early.
type capture struct {
	log     *requestlog.Log
	memory  *memory.Bound
	booked  int64
	most    int // bytes of each body; 0: none is written
	request body
	answer  body
}

// body is the beginning of a request's or an answer's text.
type body struct {
	text []byte
	came int64
}

// captureOf starts to gather for a request, if its key's are written.
func captureOf(log *requestlog.Log, memory *memory.Bound, a *asked, sent []byte) *capture {
	name := ""
	if a.key != nil {
		name = a.key.Name
	}
	most, wanted := log.Wants(name)
	if !wanted {
		return nil
	}
	c := &capture{log: log, memory: memory, most: most}
	c.take(&c.request, sent)
	return c
}

// answered takes a piece of the answer.
func (c *capture) answered(b []byte) {
	if c != nil {
		c.take(&c.answer, b)
	}
}

func (c *capture) take(to *body, b []byte) {
	to.came += int64(len(b))
	n := min(len(b), c.most-len(to.text))
	if n <= 0 {
		return
	}
	if !c.memory.Take(int64(n)) {
		c.most = 0
		return
	}
	c.booked += int64(n)
	to.text = append(to.text, b[:n]...)
}

// end writes the line of a request that has ended.
func (c *capture) end(door string, a *asked, r *record) {
	if c == nil {
		return
	}
	line := requestlog.Line{Time: a.wall.UTC(), ID: a.id, Door: door, Method: a.method, Path: a.path, Model: a.model, Worker: r.worker, Status: r.status,
		Outcome: r.outcome, Error: r.code, Seconds: time.Duration(r.ended - a.start).Seconds(), Queued: time.Duration(r.queued).Seconds(), Resumes: int(r.resumes.Load())}
	if a.key != nil {
		line.Key = a.key.Name
	}
	if a.client.IsValid() {
		line.Client = a.client.String()
	}
	if a.pool != nil {
		line.Pool = a.pool.Name
	}
	if r.first > 0 {
		first := time.Duration(r.first - a.start).Seconds()
		line.First = &first
	}
	if u := r.usage; u.Known {
		cached := max(0, u.Cached)
		line.TokensIn, line.Cached, line.TokensOut = &u.Prompt, &cached, &u.Generated
	}
	if c.booked > 0 {
		line.Request, line.Answer = c.request.shown(), c.answer.shown()
	}
	c.log.Write(&line)
	c.memory.Give(c.booked)
}

// shown is the text as it is written: whole characters. What is no text is told by its
// length alone.
func (b *body) shown() *requestlog.Text {
	if b.came == 0 {
		return nil
	}
	text := b.text
	for n := 0; n < utf8.UTFMax && len(text) > 0 && !utf8.Valid(text[max(0, len(text)-utf8.UTFMax):]); n++ {
		text = text[:len(text)-1]
	}
	if !utf8.Valid(text) {
		text = nil
	}
	return &requestlog.Text{Text: string(text), Bytes: b.came, Cut: int64(len(text)) < b.came}
}

// How many requests that have ended are kept: of all, and of those that did not end
// well, which the others would soon push out.
const (
	keptEnded  = 2048
	keptFailed = 512
)

// recentRequests keeps the last requests that have ended. No text of theirs is among it.
type recentRequests struct {
	mu     sync.Mutex
	ok     ring
	failed ring
}

// ring is the last requests of one kind, written round and round.
type ring struct {
	list []endedRequest
	next int
}

func (r *ring) add(b *endedRequest, most int) {
	if len(r.list) < most {
		r.list = append(r.list, *b)
	} else {
		r.list[r.next%most] = *b
	}
	r.next++
}

// endedRequest is one request, as compact as it was seen.
type endedRequest struct {
	id, pool, worker, model, route, key, path string
	outcome, code                             string
	began                                     time.Time
	queued, first, took                       int64 // nanoseconds; first 0: there was none
	prompt, cached, generated                 int64 // tokens; -1: nobody has said
	status, priority, resumes                 int
	streamed                                  bool
}

// add keeps a request that has ended.
func (p *recentRequests) add(a *asked, r *record) {
	b := endedRequest{
		id: a.id, worker: r.worker, model: a.model, path: a.path, outcome: r.outcome, code: r.code, began: a.wall,
		queued: r.queued, took: r.ended - a.start, prompt: -1, cached: -1, generated: -1, status: r.status,
		priority: a.priority, resumes: int(r.resumes.Load()), streamed: a.peek.Stream,
	}
	if a.pool != nil {
		b.pool = a.pool.Name
	}
	if a.route != nil {
		b.route = a.route.cfg.Name
	}
	if a.key != nil {
		b.key = a.key.Name
	}
	if r.first > 0 {
		b.first = r.first - a.start
	}
	switch u := &r.usage; {
	case u.Known:
		b.prompt, b.cached, b.generated = u.Prompt, max(0, u.Cached), u.Generated
	case r.generated.Load() > 0:
		b.generated = r.generated.Load()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.outcome == "ok" {
		p.ok.add(&b, keptEnded)
	} else {
		p.failed.add(&b, keptFailed)
	}
}

// list returns all that is kept, the newest first.
func (p *recentRequests) list() []endedRequest {
	p.mu.Lock()
	out := append(slices.Clone(p.ok.list), p.failed.list...)
	p.mu.Unlock()
	slices.SortFunc(out, func(a, b endedRequest) int { return b.ended().Compare(a.ended()) })
	return out
}

func (b *endedRequest) ended() time.Time { return b.began.Add(time.Duration(b.took)) }

// shown is the request as the admin API shows it.
func (b *endedRequest) shown(door string) control.Ended {
	e := control.Ended{
		ID: b.id, Pool: control.Known(b.pool), Worker: control.Known(b.worker), Model: control.Known(b.model), Route: control.Known(b.route),
		Key: control.Known(b.key), Priority: surface.PriorityNames[b.priority], Path: b.path, Status: b.status, Outcome: b.outcome, Reason: control.Known(b.code),
		Began: b.began.UTC(), End: b.ended().UTC(), QueueSeconds: float64(b.queued) / 1e9, Seconds: float64(b.took) / 1e9,
		Resumes: b.resumes, Streamed: b.streamed, Door: door,
	}
	if b.first > 0 {
		seconds := float64(b.first) / 1e9
		e.TTFTSeconds = &seconds
	}
	for n, to := range map[*int64]**int64{&b.prompt: &e.PromptTokens, &b.cached: &e.CachedTokens, &b.generated: &e.GeneratedTokens} {
		if *n >= 0 {
			*to = n
		}
	}
	return e
}

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
