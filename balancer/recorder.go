package balancer

import (
	"roundhouse/balancer/resume"
	"roundhouse/balancer/surface"
)

// recorder enters in the books of a request what its answer says while it streams.
type recorder struct {
	x    *exchange
	last int64 // when the last event was relayed
}

// take enters what was found in events.
func (m *recorder) take(got *resume.Got) {
	x := m.x
	if x.asked.kind == surface.Stored {
		got.Usage, got.Tokens = resume.Usage{}, 0 // they were counted when they were generated
	}
	if got.Usage.Known {
		x.record.usage = got.Usage
	}
	if got.Stored != nil {
		x.d.responses.Keep(x.asked.path, x.asked.owner, got.Stored, x.booking.Charge.Try())
	}
	if got.Refused {
		x.record.outcome = "client_error"
	}
	if got.Tokens > 0 {
		x.d.ledger.Grow(&x.booking.Charge, got.Tokens)
		x.record.generated.Add(got.Tokens)
	}
}

// relayed books the time of a write with n events.
func (m *recorder) relayed(n int) {
	x := m.x
	now := x.d.now()
	if m.last == 0 && x.record.outcome == "client_error" {
		return // a refusal, which a stream tells in its first event
	}
	if m.last == 0 {
		x.record.first = now
		x.d.ledger.First(&x.booking.Charge, now)
		x.booking.computed(x.asked.pool) // the next prompt like it may come
		x.asked.pool.Pump(&x.d.fleet)
		x.record.series = x.d.metrics.Of(x.asked.labels())
		x.record.series.Began(now - x.asked.start)
		x.asked.pool.Tally.First(now - x.asked.start)
		x.d.metrics.Foretold(x.booking.worker.Load().ID, x.booking.Charge.Predicted(), float64(now-x.booking.sentAt)/1e9)
	} else {
		x.record.series.Between(float64(now-m.last)/1e9/float64(n), n)
	}
	m.last = now
}

// whole enters what an answer that came whole has taken.
func (m *recorder) whole() {
	x := m.x
	if x.record.usage.Known {
		x.d.ledger.Settle(&x.booking.Charge, x.record.usage.Prompt, x.record.usage.Cached)
		x.booking.worker.Load().Hits.Tells(x.record.usage.Cached)
		x.asked.pool.Learn(x.asked.model).Learn(x.asked.size(), x.record.usage.Prompt, x.record.usage.Generated)
	}
	x.booking.remember(x.asked.pool)
}
