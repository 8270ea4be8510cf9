package balancer

import (
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/metrics"
	"roundhouse/balancer/surface"
)

// finish is the end of every exchange: its books, its line in the log.
func (x *exchange) finish() {
	x.g.serve(nil)
	if x.booking.Charge.Worker() != nil {
		x.abandon() // a path that ended without its release would be a fault
	}
	x.payload.GiveBack(&x.d.memory)
	r := &x.record
	if x.asked.key != nil {
		x.asked.key.Leave()
		x.asked.key.Charge(x.used() - x.booking.advance)
	}
	x.d.live.delist(x)
	if r.outcome == "" {
		r.outcome = outcomeOf(r.status)
	}
	x.tell()
	x.count()
	x.account()
	x.logged.end(x.d.id, &x.asked, r)
	x.d.past.add(x)
	if x.v.set.Log.Access {
		x.d.logAccess(x.v, &x.asked, r)
	}
}

// count enters the request in the metrics.
func (x *exchange) count() {
	a, r, k := &x.asked, &x.record, x.asked.labels()
	if r.series == nil {
		r.series = x.d.metrics.Of(k)
		if r.first > 0 { // of a stream, its first event was counted when it came
			r.series.Began(r.first - a.start)
			a.pool.Tally.First(r.first - a.start)
		}
	}
	a.pool.Tally.Ended(r.outcome, r.usage.Prompt)
	x.d.metrics.Ended(r.series, k, &metrics.Outcome{
		Status: r.status, Word: r.outcome, Priority: a.priority, Took: r.ended - a.start,
		Overhead: r.overhead, Queued: r.queued, Usage: r.usage, Generated: r.generated.Load(),
	})
}

// account enters the request in the use of its key, if an engine has answered it. A
// filter's keys are without bound: they are one.
func (x *exchange) account() {
	r := &x.record
	if x.booking.sentAt == 0 || r.status >= 400 && r.outcome != "cancelled" {
		return
	}
	name := ""
	if k := x.asked.key; k != nil {
		if name = k.Name; x.v.keys.Configured(name) != k {
			name = "other"
		}
	}
	out := r.output()
	x.d.usage.Count(name, x.asked.labels().Model, control.Used{Requests: 1, TokensIn: x.used() - out, TokensCached: max(0, r.usage.Cached), TokensOut: out}, time.Now())
}

// used is the tokens that the request's key is charged with in the end. Of an answer
// that does not say what it took, the prompt counts as it was estimated: several
// choices, an echo, or a client that left before the end are no cheaper.
func (x *exchange) used() int64 {
	r := &x.record
	prompt := r.usage.Prompt
	if !r.usage.Known && x.booking.sentAt > 0 && (r.status == 200 || r.outcome == "cancelled") {
		prompt, _ = x.asked.estimate()
	}
	return prompt + r.output()
}

// tell has the filters and the trace know how the request ended.
func (x *exchange) tell() {
	x.record.ended = x.d.now()
	if x.pass != nil {
		x.pass.End(x.record.told(x.asked.start))
	}
	x.trace.finish(&x.asked, &x.record)
	x.trace = nil
	if k := x.asked.key; k != nil && x.v.keys.Configured(k.Name) == k && x.d.current().keys.Configured(k.Name) != nil { // a filter's keys are without bound
		r := &x.record
		x.d.metrics.EndedOf(k.Name, &metrics.Outcome{Word: r.outcome, Usage: r.usage, Generated: r.generated.Load()})
	}
}

// parted says what becomes of an exchange that is over, and what its client is
// told: nothing, where it has left.
func (x *exchange) parted(phase string) (f *surface.Failure, outcome string) {
	switch cause(x.booking.why.Load()) {
	case causeClient:
		x.d.metrics.HungUp(x.asked.pool.Name, phase)
		return nil, "cancelled"
	case causeStop:
		return &surface.Failure{Status: 503, Type: "service_unavailable", Code: "shutting_down", Message: "the door is shutting down"}, "failed"
	}
	return &surface.Failure{Status: 499, Type: "api_error", Code: "cancelled", Message: "the request was cancelled by an operator"}, "cancelled"
}
