package balancer

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"roundhouse/balancer/ledger"
	"roundhouse/balancer/wire"
)

// maxAnswer bounds an answer that does not stream.
const maxAnswer = 64 << 20

// unary serves a request whose answer does not stream: it is held whole before
// the client sees a byte, so that a worker's death costs another try and
// nothing else.
func (x *exchange) unary(out replier) {
	defer x.finish()
	var a wire.Answer
	for {
		f := x.open(&a)
		if x.over() {
			x.abandon()
			x.status = 499
			f, outcome := x.parted("waiting")
			out.end(x, f)
			x.outcome = outcome
			return
		}
		if f != nil {
			out.refuse(x, f)
			return
		}
		ctype, after := headerText(a.ContentType), headerText(a.RetryAfter)
		disposition := headerText(a.Disposition)
		room := out.room()
		whole, err := x.readAnswer(&a, room)
		if err == nil {
			x.settle(a.Status, whole[len(room):])
			if x.pass.WantsChunks() {
				body, f := x.rewrite(whole[len(room):])
				if f != nil {
					out.refuse(x, f)
					return
				}
				whole = append(whole[:len(room)], body...)
			}
			if x.keepsName() {
				whole = append(whole[:len(room):len(room)], x.named(whole[len(room):])...)
			}
			x.status = a.Status
			out.reply(x, reply{ctype, after, disposition}, whole)
			return
		}
		if x.over() {
			continue
		}
		if err == errTooLong {
			x.drop()
			x.release(ledger.Neutral)
			out.refuse(x, &failure{status: 502, typ: "api_error", code: "answer_too_long", message: fmt.Sprintf("the worker's answer is longer than %d MiB", maxAnswer>>20)})
			return
		}
		w := x.worker.Load()
		how, why := x.blame("broken_answer")
		x.d.log.Warn("worker broke off an answer", "request", x.id, "worker", w.id, "reason", why, "error", err.Error())
		x.lost(how, why)
		x.d.suspect(w, err)
	}
}

// readAnswer reads a whole answer behind what stands in room, however long it
// takes while the worker makes progress.
func (x *exchange) readAnswer(a *wire.Answer, room []byte) ([]byte, error) {
	x.mu.Lock()
	c := x.up
	x.mu.Unlock()
	if c == nil {
		return nil, errGone
	}
	if a.Length < 0 || a.Length > int64(c.to-c.from) {
		c.readIn(x.d.now(), time.Duration(x.v.set.Door.Limits.Idle))
	}
	body, keep, err := c.body(a, room, maxAnswer)
	if err != nil {
		return nil, err
	}
	x.whole = x.d.now()
	if keep {
		x.keep(x.whole)
	} else {
		x.drop()
	}
	return body, nil
}

// settle ends the charge of an answer that came whole.
func (x *exchange) settle(status int, body []byte) {
	x.first = x.whole
	how := ledger.Served
	switch {
	case status == 429 || status == 503:
		how = ledger.Busy
	case status >= 500:
		how = ledger.Failed
	case status >= 400:
		how = ledger.Neutral
	}
	if how == ledger.Served {
		tail := body[max(0, len(body)-2048):]
		if at := bytes.LastIndex(tail, []byte(`"usage"`)); at >= 0 {
			x.usage.read(tail[at:])
		}
		if x.usage.known {
			x.d.ledger.Settle(&x.charge, x.usage.prompt, x.usage.cached)
			x.worker.Load().hits.tells(x.usage.cached)
			x.d.ledger.Grow(&x.charge, x.usage.generated)
			x.pool.learn(x.model).Learn(x.peek.PromptBytes, x.usage.prompt, x.usage.generated)
		}
		x.computed()
		if !x.own {
			x.remember()
		}
		x.keepHeld(body)
	}
	x.releaseAt(how, x.whole)
}

// refused enters that the door answers with an error of its own.
func (x *exchange) refused(f *failure) {
	x.status = f.status
	x.outcome = "refused"
	if f.status == 502 || f.code == "no_worker" {
		x.outcome = "failed"
	}
	if f.reason != "" {
		x.d.metrics.refused(x.pool.name, f.reason)
	}
}

// abandon ends the work for a request that nobody waits for.
func (x *exchange) abandon() {
	x.drop()
	x.release(ledger.Neutral)
	x.outcome = "cancelled"
}

// parted says what becomes of an exchange that is over, and what its client is
// told: nothing, where it has left.
func (x *exchange) parted(phase string) (f *failure, outcome string) {
	switch cause(x.why.Load()) {
	case causeClient:
		x.d.metrics.hangups.WithLabelValues(x.pool.name, phase).Inc()
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

// finish is the end of every exchange: its books, its line in the log.
func (x *exchange) finish() {
	x.g.serve(nil)
	if x.charge.Worker() != nil {
		x.abandon() // a path that ended without its release would be a fault
	}
	x.takeBack()
	x.d.memory.give(x.booked)
	x.booked = 0
	x.body = nil
	giveBody(x.lent)
	x.lent = nil
	if x.key != nil {
		x.key.leave()
		real := x.generated.Load()
		if x.usage.known {
			real = x.usage.prompt + x.usage.generated
		}
		x.key.charge(real - x.charged)
	}
	x.d.delist(x)
	if x.outcome == "" {
		x.outcome = outcomeOf(x.status)
	}
	x.tellFilters()
	x.endTrace()
	x.d.metrics.ended(x)
	x.d.logAccess(x)
}

func outcomeOf(status int) string {
	switch {
	case status < 400:
		return "ok"
	case status < 500:
		return "client_error"
	}
	return "failed"
}

// read takes the token counts out of a usage object.
func (u *usage) read(b []byte) {
	number := func(name string) (n int64, ok bool) {
		v, ok := wire.Field(b, name)
		if !ok {
			return 0, false
		}
		n, err := strconv.ParseInt(string(v), 10, 53)
		return n, err == nil && n >= 0
	}
	prompt, ok := number(`"prompt_tokens"`)
	if !ok {
		if prompt, ok = number(`"input_tokens"`); !ok {
			return
		}
	}
	u.known, u.prompt = true, prompt
	if g, ok := number(`"completion_tokens"`); ok {
		u.generated = g
	} else if g, ok := number(`"output_tokens"`); ok {
		u.generated = g
	}
	u.cached = -1
	if c, ok := number(`"cached_tokens"`); ok {
		u.cached = c
	}
}
