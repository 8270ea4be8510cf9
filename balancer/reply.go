package balancer

import (
	"fmt"
	"net"
	"strconv"

	"github.com/valyala/fasthttp"

	"roundhouse/balancer/extend"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/surface"
)

// replier writes an answer that does not stream. fasthttp does it where it has
// read the request, the connection itself where the door has.
type replier interface {
	room() []byte                             // what an answer is read behind
	reply(x *exchange, r reply, whole []byte) // whole begins with room
	refuse(x *exchange, f *surface.Failure)
	lines() []byte                       // of a head, that are not the worker's
	passed(keep bool)                    // the client has its answer already; keep: the connection goes on
	end(x *exchange, f *surface.Failure) // and the connection; f is nil where the client has left
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

// corsLines are the lines for pages of other origins that were set on an answer.
func corsLines(ctx *fasthttp.RequestCtx) (lines []byte) {
	for _, name := range [...]string{"access-control-allow-origin", "vary", "access-control-expose-headers"} {
		if v := ctx.Response.Header.Peek(name); len(v) > 0 {
			lines = fmt.Appendf(lines, "%s: %s\r\n", name, v)
		}
	}
	return lines
}

// head appends the head of an answer that does not stream; a length below 0 is not
// known.
func (x *exchange) head(b []byte, r reply, length int, more []byte) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(x.record.status), 10)
	b = append(append(b, ' '), fasthttp.StatusMessage(x.record.status)...)
	if r.ctype != "" {
		b = append(append(b, "\r\ncontent-type: "...), r.ctype...)
	}
	switch {
	case length >= 0:
		b = append(b, "\r\ncontent-length: "...)
		b = strconv.AppendInt(b, int64(length), 10)
	case !x.asked.http10:
		b = append(b, "\r\ntransfer-encoding: chunked"...)
	}
	if r.after != "" {
		b = append(append(b, "\r\nretry-after: "...), r.after...)
	}
	if r.disposition != "" {
		b = append(append(b, "\r\ncontent-disposition: "...), r.disposition...)
	}
	b = append(b, "\r\n"...)
	b = surface.AppendDate(b)
	b = append(b, more...)
	b = x.record.marks(b, x.asked.id, x.pass)
	if x.asked.http10 || x.d.parting(x.g) {
		x.close = true
	}
	if x.close {
		b = append(b, "connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}

// marks appends the fields that every answer carries.
func (r *record) marks(b []byte, id string, pass *extend.Pass) []byte {
	b = append(append(append(b, "x-request-id: "...), id...), "\r\n"...)
	if r.worker != "" {
		b = append(append(append(b, "x-roundhouse-worker: "...), r.worker...), "\r\n"...)
	}
	b = append(b, "x-roundhouse-queue-ms: "...)
	b = strconv.AppendInt(b, r.queued/1e6, 10)
	for _, f := range r.replyFields(pass) {
		b = append(append(append(append(b, "\r\n"...), f[0]...), ": "...), f[1]...)
	}
	return append(b, "\r\n"...)
}

// whole writes an answer that is no stream.
func (s *relay) whole(status int, head reply, body []byte) bool {
	x := s.x
	x.record.status = status
	b := x.head(make([]byte, 0, 512+len(body)), head, len(body), s.cors)
	s.started = true
	x.logged.answered(body)
	defer x.g.sent()
	return x.g.send(append(b, body...)) == nil && !x.close
}

// refuse tells the client that it will get no answer: as an answer while none
// has begun, else as an event.
func (s *relay) refuse(f *surface.Failure) bool {
	x := s.x
	was := x.record.status
	x.refused(f)
	if s.started {
		x.record.status = was
		return s.fail(f)
	}
	return s.whole(f.Status, headOf(f), f.JSON(x.asked.path))
}

// fail ends a stream that has begun with one error event, and neither [DONE]
// nor the last chunk: clients take those for success. The connection ends.
func (s *relay) fail(f *surface.Failure) bool {
	x := s.x
	x.record.outcome, x.record.code = "failed", f.Code
	if x.booking.Charge.Worker() != nil {
		x.booking.drop()
		x.release(ledger.Neutral)
	}
	s.write(f.Event(x.asked.path))
	return false
}
