package balancer

import (
	"math"
	"sync"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/ledger"
)

// keptDecisions is how many choices can be explained afterwards.
const keptDecisions = 512

// keptCandidates is how many workers of a large pool an explanation shows.
const keptCandidates = 64

// decisions keeps the last choices, for those who ask why.
type decisions struct {
	mu   sync.Mutex
	ring [keptDecisions]decision
	next int
}

// decision is one choice, as compact as it was seen.
type decision struct {
	request string
	pool    string
	policy  ledger.Policy
	reason  ledger.Reason
	chosen  string
	at      time.Time
	need    int64
	seen    []ledger.Weighed
}

// explain keeps the choice just made for an exchange.
func (d *Door) explain(x *exchange) {
	r := &d.why
	now := x.booking.ask.Now
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &r.ring[r.next%keptDecisions]
	r.next++
	e.request, e.pool, e.policy, e.reason = x.asked.id, x.asked.pool.name, x.asked.pool.policyNow(), x.booking.reason
	e.chosen, e.at, e.need = x.booking.worker.Load().id, x.asked.wall.Add(time.Duration(now-x.asked.start)), x.booking.ask.Prompt+x.booking.ask.Expect
	e.seen = d.ledger.Weighed(e.seen[:0], &x.asked.pool.group, x.booking.worker.Load().acct, keptCandidates, now)
}

func (r *decisions) find(request string) (control.Decision, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range keptDecisions {
		e := &r.ring[((r.next-1-k)%keptDecisions+keptDecisions)%keptDecisions]
		if e.request == request {
			return e.explained(), true
		}
	}
	return control.Decision{}, false
}

func (e *decision) explained() control.Decision {
	out := control.Decision{Request: e.request, At: e.at, Pool: e.pool, Policy: e.policy.String(), Reason: string(e.reason), Chosen: e.chosen, Need: e.need, Candidates: []control.Candidate{}}
	best := math.Inf(1)
	for _, v := range e.seen {
		c := control.Candidate{
			Worker: v.ID, Score: v.Fill, ChargedTokens: v.KV, ForeignTokens: v.Foreign, PrefillTokens: v.Prefill, PrefixTokens: v.Hit, Excluded: v.Out,
		}
		if v.Capacity > 0 {
			c.CapacityTokens = &v.Capacity
		}
		if v.Out == "" {
			wait := v.Wait
			c.PredictedTTFT = &wait
			if v.ID != e.chosen && v.Wait < best {
				best, out.RunnerUp = v.Wait, v.ID
			}
		}
		if v.ReportAge >= 0 {
			age := float64(v.ReportAge) / 1e9
			c.ReportAgeSeconds = &age
		}
		out.Candidates = append(out.Candidates, c)
	}
	return out
}
