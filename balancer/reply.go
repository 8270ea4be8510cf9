package balancer

import (
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"errors"

	"roundhouse/balancer/extend"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

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

// markFields is marks, as pairs.
func (r *record) markFields(id string, pass *extend.Pass) [][2]string {
	m := [][2]string{{"X-Request-Id", id}, {"X-Roundhouse-Queue-Ms", strconv.FormatInt(r.queued/1e6, 10)}}
	if r.worker != "" {
		m = append(m, [2]string{"X-Roundhouse-Worker", r.worker})
	}
	return append(m, r.replyFields(pass)...)
}

// fail answers with an error that needs no exchange.
func (d *common) fail(ctx *fasthttp.RequestCtx, f *surface.Failure) {
	if f.Reason != "" {
		d.metrics.Refused("", f.Reason)
		d.lobby.Refused(f.Reason)
	}
	ctx.Response.Reset()
	d.cors(ctx, d.current())
	ctx.Response.Header.Set("x-request-id", surface.RequestID(ctx.Request.Header.Peek("X-Request-Id")))
	if f.RetryAfter > 0 {
		ctx.Response.Header.Set("retry-after", strconv.Itoa(f.RetryAfter))
	}
	if f.Allow != "" {
		ctx.Response.Header.Set("allow", f.Allow)
	}
	if f.Status == 401 {
		ctx.Response.Header.Set("www-authenticate", "Bearer")
	}
	ctx.SetStatusCode(f.Status)
	ctx.SetContentType("application/json")
	ctx.SetBody(f.JSON(string(ctx.Path())))
}

func headFailure(he *wire.HeadError) *surface.Failure {
	f := &surface.Failure{Status: he.Status, Type: "invalid_request_error", Code: "invalid_http", Message: he.What, Reason: "bad_request"}
	if he.Status == 405 {
		f.Allow = surface.AllMethods
	}
	if he.Status == 503 {
		f.Type, f.Code, f.Reason, f.RetryAfter = "service_unavailable", "memory", "memory", 1
	}
	return f
}

// refusal is the whole answer to a request that the guard refuses.
func (d *common) refusal(he *wire.HeadError) []byte {
	return d.alone(headFailure(he), "", surface.RequestID(nil), true)
}

// alone is the whole answer to a request that is refused before there is an
// exchange for it.
func (d *common) alone(f *surface.Failure, path, id string, close bool) []byte {
	if f.Reason != "" {
		d.metrics.Refused("", f.Reason)
		d.lobby.Refused(f.Reason)
	}
	body := f.JSON(path)
	b := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nx-request-id: %s\r\n",
		f.Status, fasthttp.StatusMessage(f.Status), len(body), id)
	b = surface.AppendDate(b)
	if f.RetryAfter > 0 {
		b = fmt.Appendf(b, "retry-after: %d\r\n", f.RetryAfter)
	}
	if f.Allow != "" {
		b = fmt.Appendf(b, "allow: %s\r\n", f.Allow)
	}
	if f.Status == 401 {
		b = append(b, "www-authenticate: Bearer\r\n"...)
	}
	if close {
		b = append(b, "connection: close\r\n"...)
	}
	return append(append(b, "\r\n"...), body...)
}

// cors answers to pages of the origins that are allowed.
func (d *common) cors(ctx *fasthttp.RequestCtx, v *snapshot) {
	allowed := v.set.Door.CORS.Origins
	if len(allowed) == 0 {
		return
	}
	origin := string(ctx.Request.Header.Peek("Origin"))
	for _, o := range allowed {
		if o == "*" || o == origin && origin != "" {
			h := &ctx.Response.Header
			h.Set("access-control-allow-origin", o)
			h.Set("vary", "Origin")
			h.Set("access-control-expose-headers", "x-request-id, x-roundhouse-worker, x-roundhouse-queue-ms, retry-after")
			h.Set("access-control-allow-methods", "GET, POST, DELETE, OPTIONS")
			h.Set("access-control-allow-headers", askedHeaders(ctx.Request.Header.Peek("Access-Control-Request-Headers")))
			h.Set("access-control-max-age", "600")
			return
		}
	}
}

// plainHeaders are those that a page may send where it does not ask for others.
const plainHeaders = "authorization, content-type, x-api-key, x-request-id, x-session-id, x-roundhouse-priority"

// askedHeaders are the fields that a preflight asks for, which is allowed: clients for
// browsers send many of their own, and the door passes none on that it does not know.
func askedHeaders(asked []byte) string {
	if len(asked) == 0 || len(asked) > 4096 {
		return plainHeaders
	}
	for _, c := range asked {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != ',' && c != ' ' {
			return plainHeaders
		}
	}
	return string(asked)
}

// refuseHead answers what fasthttp would not read though the guard let it
// through; the connection ends with it.
func (d *common) refuseHead(ctx *fasthttp.RequestCtx, err error) {
	he := &wire.HeadError{Status: 400, What: "this is not a valid HTTP request"}
	if errors.Is(err, fasthttp.ErrBodyTooLarge) {
		he = &wire.HeadError{Status: 413, What: "the body is longer than this door takes"}
	}
	d.fail(ctx, headFailure(he))
	ctx.SetConnectionClose()
}

// headOf is what of an answer's head says why a request is refused.
func headOf(f *surface.Failure) reply {
	r := reply{ctype: "application/json"}
	if f.RetryAfter > 0 {
		r.after = strconv.Itoa(f.RetryAfter)
	}
	return r
}

// reply is what of an answer's head comes from the worker.
type reply struct{ ctype, after, disposition string }

// headerText copies a field's value out of a buffer that is about to be used
// again.
func headerText(b []byte) string {
	if string(b) == "application/json" {
		return "application/json"
	}
	return string(b)
}
