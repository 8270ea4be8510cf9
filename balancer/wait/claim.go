package wait

import (
	"iter"
	"slices"

	"roundhouse/balancer/ledger"
)

// Claim is what one request asks of the ledger, and what it holds there. While
// it waits in a queue, only the queue writes it.
type Claim struct {
	Ask    ledger.Ask
	Charge ledger.Charge
	Bound  bool // only Ask.Prefer can serve it
}

// Pick chooses a worker and books the request there. One under trial that has no
// room holds nobody up.
func (c *Claim) Pick(l *ledger.Ledger, g *ledger.Group) (ledger.Verdict, ledger.Reason) {
	verdict, reason := l.Pick(g, &c.Ask, &c.Charge)
	if verdict != ledger.Picked && c.Ask.Prefer != nil && !c.Bound {
		c.Ask.Prefer = nil
		verdict, reason = l.Pick(g, &c.Ask, &c.Charge)
	}
	return verdict, reason
}

// mayGoTo adds the workers that the request may go to now.
func (c *Claim) mayGoTo(l *ledger.Ledger, workers iter.Seq[*ledger.Worker], list []ledger.Try) []ledger.Try {
	out := make(map[ledger.Try]bool, len(list)+len(c.Ask.Tried))
	for _, t := range list {
		out[t] = true
	}
	for _, t := range c.Ask.Tried {
		out[t] = true
	}
	if w := c.Ask.Spare; w != nil {
		out[ledger.Try{Worker: w, Generation: w.Generation(l)}] = true
	}
	for w := range workers {
		t := ledger.Try{Worker: w, Generation: w.Generation(l)}
		if !out[t] && (!c.Bound || c.Ask.Prefer == w) && (c.Ask.Among == nil || slices.Contains(c.Ask.Among, w)) && (c.Ask.Only == nil || c.Ask.Only(w)) {
			list = append(list, t)
		}
	}
	return list
}
