package balancer

import (
	"testing"
	"time"

	"roundhouse/balancer/ledger"
)

// TestPlacedAtOneThatLeaves chooses a worker that a new worker set takes away
// before the choice is entered: the request goes to it all the same, where it is
// booked, and neither nowhere nor to the worker that it tried before.
func TestPlacedAtOneThatLeaves(t *testing.T) {
	d := &Door{ledger: ledger.New(), epoch: time.Now().Add(-time.Second)}
	d.metrics = newMetrics(d)
	p := newPool("p")
	w := &worker{id: "p/1", pool: p}
	w.acct = &ledger.Worker{ID: w.id, Of: w}
	d.ledger.SetGroup(&p.group, ledger.LeastKV, []*ledger.Worker{w.acct})
	d.ledger.SetWorker(w.acct, 1, true, 60_000, d.now())
	x := &exchange{d: d, pool: p, ask: ledger.Ask{Prompt: 10, Now: d.now()}}
	x.worker.Store(&worker{id: "p/0", pool: p})
	verdict, reason := d.ledger.Pick(&p.group, &x.ask, &x.charge)
	if verdict != ledger.Picked {
		t.Fatalf("the worker is not to be had: %v", verdict)
	}
	d.ledger.SetGroup(&p.group, ledger.LeastKV, nil)
	x.placed(reason)
	if got := x.worker.Load(); got != w {
		t.Errorf("it goes to %s", got.id)
	}
}
