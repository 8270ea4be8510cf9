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
	x := &exchange{d: d, asked: asked{pool: p}, booking: booking{ask: ledger.Ask{Prompt: 10, Now: d.now()}}}
	x.booking.worker.Store(&worker{id: "p/0", pool: p})
	verdict, reason := d.ledger.Pick(&p.group, &x.booking.ask, &x.booking.charge)
	if verdict != ledger.Picked {
		t.Fatalf("the worker is not to be had: %v", verdict)
	}
	d.ledger.SetGroup(&p.group, ledger.LeastKV, nil)
	x.placed(reason)
	if got := x.booking.worker.Load(); got != w {
		t.Errorf("it goes to %s", got.id)
	}
}

// TestRememberedTwice: that an engine has a prompt in its cache is entered when it
// is sent there, or when a worker of ours has computed it, and once more when it
// was last used, not at every step between.
func TestRememberedTwice(t *testing.T) {
	f := func(own bool, sent, computed int) {
		d := &Door{ledger: ledger.New(), epoch: time.Now().Add(-time.Second)}
		d.metrics = newMetrics(d)
		p := newPool("p")
		p.prefix.Store(ledger.NewPrefixTable(1 << 20))
		w := &worker{id: "p/1", pool: p}
		w.own.Store(own)
		w.acct = &ledger.Worker{ID: w.id, Of: w}
		p.untold = map[*worker][]byte{}
		d.ledger.SetGroup(&p.group, ledger.LeastKV, []*ledger.Worker{w.acct})
		d.ledger.SetWorker(w.acct, 1, true, 60_000, d.now())
		x := &exchange{d: d, asked: asked{pool: p}, booking: booking{own: own, chunks: []uint64{7}, ask: ledger.Ask{Prompt: 1000, Now: d.now()}}}
		_, reason := d.ledger.Pick(&p.group, &x.booking.ask, &x.booking.charge)
		x.placed(reason)
		if got := len(p.untold[w]) / 8; got != sent {
			t.Errorf("ours %v: when it is sent, it was entered %d times; want %d", own, got, sent)
		}
		x.computed()
		if got := len(p.untold[w]) / 8; got != computed {
			t.Errorf("ours %v: when it is computed, it was entered %d times; want %d", own, got, computed)
		}
	}
	f(false, 1, 1)
	f(true, 0, 1)
}
