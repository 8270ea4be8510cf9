package decision

import (
	"math"
	"sync"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/ledger"
)

// keptDecisions is how many choices can be explained afterwards.
const keptDecisions = 512

// Candidates is how many workers of a large pool an explanation shows.
const Candidates = 64

// Ring keeps the last choices, for those who ask why.
type Ring struct {
	mu   sync.Mutex
	ring [keptDecisions]decision
	next int
}

// Choice is one choice of a worker, and for which request.
type Choice struct {
	Request string
	Pool    string
	Policy  ledger.Policy
	Reason  ledger.Reason
	Chosen  string
	At      time.Time
	Need    int64 // tokens
}

// decision is a choice with the workers that were weighed, as compact as they
// were seen.
type decision struct {
	Choice
	seen []ledger.Weighed
}

// Note keeps a choice. weigh appends the candidates as the ledger saw them, to
// memory that the oldest choice gives up.
func (r *Ring) Note(c Choice, weigh func([]ledger.Weighed) []ledger.Weighed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &r.ring[r.next%keptDecisions]
	r.next++
	e.Choice, e.seen = c, weigh(e.seen[:0])
}

// Find explains the choice made for a request, if it is still kept.
func (r *Ring) Find(request string) (control.Decision, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range keptDecisions {
		e := &r.ring[((r.next-1-k)%keptDecisions+keptDecisions)%keptDecisions]
		if e.Request == request {
			return e.explained(), true
		}
	}
	return control.Decision{}, false
}

// List is the last choices, the newest first, as far as a filter takes them.
func (r *Ring) List(f control.DecisionFilter) control.Decisions {
	out := control.Decisions{Schema: 1, At: time.Now().UTC(), Decisions: []control.Decision{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range min(r.next, keptDecisions) {
		x := r.ring[(r.next-1-k)%keptDecisions].explained()
		if !f.Takes(&x) {
			continue
		}
		if out.Decisions = append(out.Decisions, x); len(out.Decisions) == f.Limit {
			break
		}
	}
	return out
}

func (e *decision) explained() control.Decision {
	out := control.Decision{Request: e.Request, At: e.At, Pool: e.Pool, Policy: e.Policy.String(), Reason: string(e.Reason), Chosen: e.Chosen, Need: e.Need, Candidates: []control.Candidate{}}
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
			if v.ID != e.Chosen && v.Wait < best {
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
