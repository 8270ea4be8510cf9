package balancer

import (
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"roundhouse/balancer/ledger"
)

// marks appends the fields that every answer carries.
func (s *stream) marks(b []byte) []byte {
	x := s.x
	b = append(b, s.cors...)
	b = append(append(append(b, "x-request-id: "...), x.id...), "\r\n"...)
	if w := x.worker.Load(); w != nil {
		b = append(append(append(b, "x-roundhouse-worker: "...), w.id...), "\r\n"...)
	}
	b = append(b, "x-roundhouse-queue-ms: "...)
	b = strconv.AppendInt(b, x.queued/1e6, 10)
	for _, f := range x.replyFields() {
		b = append(append(append(append(b, "\r\n"...), f[0]...), ": "...), f[1]...)
	}
	return append(b, "\r\n"...)
}

// whole writes an answer that is no stream.
func (s *stream) whole(status int, ctype, after string, body []byte) bool {
	x := s.x
	b := make([]byte, 0, 512+len(body))
	b = fmt.Appendf(b, "HTTP/1.1 %d %s\r\ncontent-type: %s\r\ncontent-length: %d\r\n", status, fasthttp.StatusMessage(status), ctype, len(body))
	if after != "" {
		b = fmt.Appendf(b, "retry-after: %s\r\n", after)
	}
	b = s.marks(b)
	if x.http10 {
		x.close = true
	}
	if x.close {
		b = append(b, "connection: close\r\n"...)
	}
	b = append(b, "\r\n"...)
	b = append(b, body...)
	s.started = true
	x.g.Conn.SetWriteDeadline(time.Now().Add(writeWithin))
	_, err := x.g.Conn.Write(b)
	return err == nil && !x.close
}

// refuse tells the client that it will get no answer: as an answer while none
// has begun, else as an event.
func (s *stream) refuse(f *failure) bool {
	x := s.x
	if f.reason != "" {
		x.d.metrics.refused(x.pool.name, f.reason)
	}
	x.outcome = "refused"
	if f.status == 502 || f.code == "no_worker" {
		x.outcome = "failed"
	}
	if s.started {
		return s.fail(f)
	}
	x.status = f.status
	after := ""
	if f.retryAfter > 0 {
		after = strconv.Itoa(f.retryAfter)
	}
	return s.whole(f.status, "application/json", after, f.body())
}

// fail ends a stream that has begun with one error event, and neither [DONE]
// nor the last chunk: clients take those for success. The connection ends.
func (s *stream) fail(f *failure) bool {
	x := s.x
	x.outcome = "failed"
	if x.charge.Worker() != nil {
		x.drop()
		x.release(ledger.Neutral)
	}
	var event []byte
	if !s.between {
		event = append(event, "\n\n"...)
	}
	event = append(append(append(event, "data: "...), f.body()...), "\n\n"...)
	s.write(event)
	return false
}
