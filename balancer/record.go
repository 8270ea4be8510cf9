package balancer

import (
	"sync/atomic"

	"roundhouse/balancer/extend"
	"roundhouse/balancer/metrics"
	"roundhouse/balancer/resume"
)

// record is the outcome of a request, as the access log, the trace and the
// metrics tell it. Times are by the door's clock.
type record struct {
	state     atomic.Int32 // of phases
	generated atomic.Int64 // tokens relayed, for the in-flight list
	worker    string       // the id of the last one

	status    int
	outcome   string
	code      string // of the error that the client was told
	usage     resume.Usage
	queued    int64 // nanoseconds spent waiting for room
	overhead  int64 // the door's own time before the request was sent
	whole     int64 // when an answer that does not stream had come
	first     int64 // when the first event or answer was relayed
	ended     int64
	resumes   atomic.Int32 // how often the stream went on at another worker
	resumeFor string
	series    *metrics.Series // where a stream is counted; nil before its first event
}

// The phases of an exchange, as the in-flight list shows them.
const (
	phaseQueued int32 = iota
	phaseSent
	phaseStreaming
	phaseParked
)

var phaseNames = [...]string{"queued", "sent", "streaming", "parked"}

// began notes that an answer comes. A refusal is none: it says nothing of how long a
// first token takes.
func (r *record) began(status int, at int64) {
	if r.first == 0 && status < 400 {
		r.first = at
	}
}

// output is the tokens of the answer: as the worker counts them, else as they
// were relayed.
func (r *record) output() int64 {
	if r.usage.Known {
		return r.usage.Generated
	}
	return r.generated.Load()
}

// outcomeOf is the outcome of an answer that says nothing else of it.
func outcomeOf(status int) string {
	switch {
	case status < 400:
		return "ok"
	case status < 500:
		return "client_error"
	}
	return "failed"
}

// told is the record as filters are told it.
func (r *record) told(start int64) *extend.Outcome {
	o := &extend.Outcome{Status: r.status, Outcome: r.outcome, Worker: r.worker, Prompt: r.usage.Prompt, Cached: max(r.usage.Cached, 0),
		Generated: r.output(), Queue: float64(r.queued) / 1e9, Duration: float64(r.ended-start) / 1e9}
	if r.first > start {
		o.TTFT = float64(r.first-start) / 1e9
	}
	return o
}

// replyFields are the fields that filters set on the way to the client.
func (r *record) replyFields(pass *extend.Pass) [][2]string {
	if pass == nil {
		return nil
	}
	return pass.Respond(r.status, r.worker)
}
