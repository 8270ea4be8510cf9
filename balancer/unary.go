package balancer

import (
	"bytes"
	"errors"

	"roundhouse/balancer/ledger"
	"roundhouse/balancer/resume"
	"roundhouse/balancer/wire"
)

// unary serves a request whose answer does not stream: unless it is very long, it is
// held whole before the client sees a byte, so that a worker's death costs another try
// and nothing else.
func (x *exchange) unary(out replier) {
	defer x.finish()
	var a wire.Answer
	for {
		f := x.open(&a)
		if x.booking.over() {
			x.abandon()
			x.record.status = 499
			f, outcome := x.parted("waiting")
			out.end(x, f)
			x.record.outcome = outcome
			return
		}
		if f != nil {
			out.refuse(x, f)
			return
		}
		head := reply{headerText(a.ContentType), headerText(a.RetryAfter), headerText(a.Disposition)}
		room := out.room()
		whole, rest, err := x.readAnswer(&a, room)
		if rest != nil {
			out.passed(x.passOn(rest, head, whole[len(room):], out.lines()))
			return
		}
		if err == nil {
			x.d.held.keep(&x.asked, whole[len(room):], x.booking.charge.Try())
			x.settle(a.Status, whole[len(room):])
			if x.pass.WantsChunks() {
				body, f := rewrite(whole[len(room):], x.pass)
				if f != nil {
					out.refuse(x, f)
					return
				}
				whole = append(whole[:len(room)], body...)
			}
			if x.asked.keepsName() {
				whole = append(whole[:len(room):len(room)], resume.Rename(whole[len(room):], x.asked.model, x.asked.peek.Model)...)
			}
			x.record.status = a.Status
			out.reply(x, head, whole)
			return
		}
		if x.booking.over() {
			continue
		}
		x.g.sent() // nothing of it will be
		if full, ok := errors.AsType[*errNoRoom](err); ok {
			x.booking.drop()
			x.release(ledger.Neutral)
			out.refuse(x, full.failure())
			return
		}
		if _, f := x.broken(err, true, "broken_answer", "worker broke off an answer"); f != nil {
			out.refuse(x, f)
			return
		}
	}
}

// settle ends the charge of an answer that came whole; body may be its end alone.
func (x *exchange) settle(status int, body []byte) {
	if x.record.first == 0 {
		x.record.first = x.record.whole
	}
	how := x.judged(status)
	if how == ledger.Served && x.asked.kind != kindHeld { // what is stored was counted when it was generated
		tail := body[max(0, len(body)-usageWithin):]
		if at := bytes.LastIndex(tail, []byte(`"usage"`)); at >= 0 {
			x.record.usage.Read(tail[at:])
		}
		if x.record.usage.Known {
			x.d.ledger.Settle(&x.booking.charge, x.record.usage.Prompt, x.record.usage.Cached)
			x.booking.worker.Load().hits.tells(x.record.usage.Cached)
			x.d.ledger.Grow(&x.booking.charge, x.record.usage.Generated)
			x.asked.pool.learn(x.asked.model).Learn(x.asked.size(), x.record.usage.Prompt, x.record.usage.Generated)
		}
		x.computed()
		if !x.booking.own {
			x.asked.pool.remember(&x.booking)
		}
	}
	x.releaseAt(how, x.record.whole)
}

// refused enters that the door answers with an error of its own.
func (x *exchange) refused(f *failure) {
	x.record.status = f.status
	x.record.outcome = "refused"
	if f.status == 500 || f.status == 502 || f.code == "no_worker" {
		x.record.outcome = "failed"
	}
	if f.reason != "" {
		x.d.metrics.refused(x.asked.pool.name, f.reason)
	}
}

// parted says what becomes of an exchange that is over, and what its client is
// told: nothing, where it has left.
func (x *exchange) parted(phase string) (f *failure, outcome string) {
	switch cause(x.booking.why.Load()) {
	case causeClient:
		x.d.metrics.hangups.WithLabelValues(x.asked.pool.name, phase).Inc()
		return nil, "cancelled"
	case causeStop:
		return &failure{status: 503, typ: "service_unavailable", code: "shutting_down", message: "the door is shutting down"}, "failed"
	}
	return &failure{status: 499, typ: "api_error", code: "cancelled", message: "the request was cancelled by an operator"}, "cancelled"
}

// headerText copies a field's value out of a buffer that is about to be used
// again.
func headerText(b []byte) string {
	if string(b) == "application/json" {
		return "application/json"
	}
	return string(b)
}
