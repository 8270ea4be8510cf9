package balancer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/pass"
	"roundhouse/balancer/stored"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
	"roundhouse/worker/api"
)

// carry sends the request to a worker and gives the client its answer, as both come.
func (p *passing) carry() {
	proxy := httputil.ReverseProxy{
		Rewrite:        func(*httputil.ProxyRequest) {}, // RoundTrip makes the request anew
		Transport:      p,
		ModifyResponse: p.answered,
		FlushInterval:  -1,
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			var f *surface.Failure
			if !errors.As(err, &f) {
				f = surface.WorkerFailed(p.x.asked.pool.Name)
			}
			p.write(f, false)
		},
		ErrorLog: p.to.log,
	}
	proxy.ServeHTTP(p.out, p.in)
}

// RoundTrip implements http.RoundTripper: it finds a worker and sends it the request,
// another one if that fails and the body can be sent from its beginning.
func (p *passing) RoundTrip(*http.Request) (*http.Response, error) {
	x := p.x
	for {
		x.booking.Ask.Order = p.order()
		if f := x.place(); f != nil {
			return nil, f
		}
		if x.booking.over() {
			return nil, errGone
		}
		w := x.booking.worker.Load()
		p.at = w.ID
		p.to.loads.Add(p.at, p.said.N)
		resp, err := p.send(w)
		notTaken := err == nil && resp.StatusCode == http.StatusServiceUnavailable && !x.booking.Bound && p.spool.Again() && x.d.fleet.NotTaken(w)
		if err == nil && !notTaken {
			return resp, nil
		}
		p.to.loads.Add(p.at, -p.said.N)
		p.at = ""
		if notTaken { // it goes to another worker, or waits for the successor
			resp.Body.Close()
			x.lost(ledger.Neutral, "status_503")
			continue
		}
		if x.booking.over() {
			return nil, errGone
		}
		if u := p.upload.Err; u != nil && u != io.EOF {
			x.booking.drop()
			x.release(ledger.Neutral)
			return nil, p.unread(u)
		}
		if _, f := x.broken(err, !neverHad(err), retryReason(err), "worker failed a request"); f != nil {
			return nil, f
		}
		if !p.spool.Again() {
			return nil, surface.WorkerFailed(x.asked.pool.Name)
		}
	}
}

// order is the pool's workers, those with the least to do first. Where a plugin orders
// them, it does so after this.
func (p *passing) order() []*ledger.Worker {
	workers := *p.x.asked.pool.Workers.Load()
	byID, ids := map[string]*ledger.Worker{}, make([]string, 0, len(workers))
	for _, w := range workers {
		byID[w.ID] = w.Acct
		ids = append(ids, w.ID)
	}
	var out []*ledger.Worker
	for _, id := range p.to.loads.Order(ids) {
		out = append(out, byID[id])
	}
	return out
}

// cut stands for the connection to a worker: what closes it ends the attempt.
type cut struct {
	net.Conn
	end context.CancelFunc
}

// Close implements net.Conn.
func (c cut) Close() error {
	c.end()
	return nil
}

// send makes one attempt, and waits for the head of an answer.
func (p *passing) send(w *fleet.Worker) (*http.Response, error) {
	x := p.x
	ctx, cancel := context.WithCancelCause(p.in.Context())
	c := &conn.Conn{}
	c.Conn = cut{end: func() { cancel(errGone) }}
	if err := x.booking.hold(c); err != nil {
		return nil, err
	}
	x.record.state.CompareAndSwap(phaseQueued, phaseSent)
	if x.record.overhead == 0 {
		x.record.overhead = x.d.now() - x.asked.start - x.record.queued
	}
	req, err := p.request(ctx, w)
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(time.Duration(x.v.set.Door.Limits.FirstByte), func() { cancel(context.DeadlineExceeded) })
	resp, err := p.to.transport.RoundTrip(req)
	if !late.Stop() && err != nil {
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel(err)
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		idle := time.Duration(x.v.set.Door.Limits.Idle)
		resp.Body = &answerBody{p: p, body: resp.Body, idle: idle, late: time.AfterFunc(idle, func() { cancel(context.DeadlineExceeded) })}
	}
	return resp, nil
}

// request makes the request anew: the worker gets the fields of the door alone.
func (p *passing) request(ctx context.Context, w *fleet.Worker) (*http.Request, error) {
	x, up := p.x, w.Up.Load()
	scheme := "http"
	if up.TLS {
		scheme = "https"
	}
	url := scheme + "://" + up.Addr + up.Prefix + x.asked.path
	if x.asked.query != "" {
		url += "?" + x.asked.query
	}
	var body io.Reader
	if x.asked.method == "POST" {
		body = p.spool.Reader()
	}
	req, err := http.NewRequestWithContext(ctx, x.asked.method, url, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.ContentLength = p.in.ContentLength
		if p.spool.Whole {
			req.ContentLength = int64(len(p.spool.Head))
		}
		req.Header.Set("Content-Type", "application/json")
		if x.asked.ctype != "" {
			req.Header.Set("Content-Type", x.asked.ctype)
		}
	}
	for _, name := range []string{"Accept", "Range", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Protocol", "Sec-Websocket-Extensions"} {
		if v := p.in.Header.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	if p.path.Socket {
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "websocket")
	}
	req.Header.Set(api.HeaderRequestID, x.asked.id)
	req.Header.Set("User-Agent", "")
	if key := w.APIKey.Load(); key != nil && *key != "" {
		req.Header.Set("Authorization", "Bearer "+*key)
	}
	for _, line := range strings.Split(string(x.trace.fields(filterFields(nil, x.pass), w.ID)), "\r\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

// answerFields are what of an answer's head the client gets.
var answerFields = []string{"Content-Type", "Content-Length", "Content-Disposition", "Content-Range", "Accept-Ranges", "Retry-After",

	"Connection", "Upgrade", "Sec-Websocket-Accept", "Sec-Websocket-Protocol", "Sec-Websocket-Extensions"}

// answered takes what an answer's head says, and a new job's id out of a short one.
func (p *passing) answered(resp *http.Response) error {
	x := p.x
	x.record.status = resp.StatusCode
	x.record.began(resp.StatusCode, x.d.now())
	x.record.state.Store(phaseStreaming)
	if resp.StatusCode < 300 && (p.path.Job == pass.Makes || p.path.Job == pass.Of && x.asked.method == "POST") {
		p.noteJob(resp)
	}
	if x.pass.WantsChunks() && isText(resp.Header.Get("Content-Type")) {
		if err := p.rewrite(resp); err != nil {
			return err
		}
	}
	kept := http.Header{}
	for _, name := range answerFields {
		if v := resp.Header.Get(name); v != "" {
			kept.Set(name, v)
		}
	}
	resp.Header, resp.Trailer = kept, nil
	for _, f := range x.record.markFields(x.asked.id, x.pass) {
		kept.Set(f[0], f[1])
	}
	p.began = true
	return nil
}

// mostJob is how long an answer that names a new job may be.
const mostJob = 1 << 20

// noteJob keeps where a new job is: only its worker knows it.
func (p *passing) noteJob(resp *http.Response) {
	begin, err := io.ReadAll(io.LimitReader(resp.Body, mostJob))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), resp.Body), resp.Body}
	if v, ok := wire.Field(begin, `"id"`); err == nil && ok && len(v) > 2 && v[0] == '"' {
		p.x.d.responses.Put(string(v[1:len(v)-1]), stored.Entry{Try: p.x.booking.Charge.Try(), Owner: p.x.asked.owner})
	}
}

// isText reports whether a filter of answers can read an answer of that type.
func isText(ctype string) bool {
	media, _, _ := mime.ParseMediaType(ctype)
	return media == "application/json" || strings.HasPrefix(media, "text/")
}

// rewrite lets the filters rewrite an answer, whole.
func (p *passing) rewrite(resp *http.Response) error {
	var text bytes.Buffer
	for {
		_, err := io.CopyN(&text, resp.Body, conn.Piece)
		if err == io.EOF {
			break
		}
		if err != nil {
			return surface.WorkerFailed(p.x.asked.pool.Name)
		}
		came := int64(text.Len())
		if full, ok := errors.AsType[*errNoRoom](p.x.bookAnswer(came+conn.Piece, came)); ok {
			return full.failure()
		}
	}
	out, f := rewrite(text.Bytes(), p.x.pass)
	if f != nil {
		return f
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(out), resp.Body}
	resp.ContentLength = int64(len(out))
	resp.Header.Set("Content-Length", strconv.Itoa(len(out)))
	return nil
}

// answerBody is an answer on its way, which ends where the worker is silent for too
// long.
type answerBody struct {
	p    *passing
	body io.ReadCloser
	idle time.Duration
	late *time.Timer
}

// Read implements io.Reader.
func (b *answerBody) Read(to []byte) (int, error) {
	b.late.Reset(b.idle)
	n, err := b.body.Read(to)
	b.late.Stop() // the client may take its time: each write has a bound of its own
	if err != nil && err != io.EOF {
		b.p.broke = err
	}
	return n, err
}

// Close implements io.Closer.
func (b *answerBody) Close() error {
	b.late.Stop()
	return b.body.Close()
}

// write tells the client that there is no answer. alone: the request is not among
// those in flight.
func (p *passing) write(f *surface.Failure, alone bool) {
	x, h := p.x, p.out.Header()
	switch {
	case alone && f.Reason != "":
		x.d.metrics.Refused("", f.Reason)
	case !alone && x.booking.over():
		return // nobody reads it
	case !alone:
		x.refused(f)
	}
	for _, m := range x.record.markFields(x.asked.id, x.pass) {
		h.Set(m[0], m[1])
	}
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	if f.Allow != "" {
		h.Set("Allow", f.Allow)
	}
	if f.Status == http.StatusUnauthorized {
		h.Set("Www-Authenticate", "Bearer")
	}
	h.Set("Content-Type", "application/json")
	p.out.WriteHeader(f.Status)
	p.out.Write(f.JSON(x.asked.path))
}

// end closes the books of a request, however it ended.
func (p *passing) end() {
	e := recover()
	x := p.x
	if e != nil && e != http.ErrAbortHandler {
		x.d.log.Error("a request panicked", "request", x.asked.id, "panic", fmt.Sprint(e), "stack", string(debug.Stack()))
	}
	if p.at != "" {
		p.to.loads.Add(p.at, -p.said.N)
	}
	x.record.whole = x.d.now()
	switch at := x.booking.Charge.Worker(); {
	case x.booking.over():
		phase := "waiting"
		if p.began {
			phase = "streaming"
		}
		_, x.record.outcome = x.parted(phase)
		if at != nil {
			x.booking.drop()
			x.release(ledger.Neutral)
		}
		if !p.began {
			x.record.status = 499
		}
	case at == nil:
	case p.broke != nil:
		x.broken(p.broke, true, "broken_answer", "worker broke off an answer")
		x.record.outcome = "failed"
	case e != nil:
		x.abandon()
	default:
		x.booking.drop()
		x.releaseAt(x.booking.judged(x.d.ledger, x.record.status, x.d.now()), x.record.whole)
	}
	x.finish()
	x.g.sent()
	if e != nil {
		panic(http.ErrAbortHandler) // the connection ends without the end of an answer
	}
}
