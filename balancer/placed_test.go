package balancer

import (
	"testing"
	"time"

	"roundhouse/balancer/fleet"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/metrics"
	"roundhouse/balancer/wait"
)

// TestPlacedAtOneThatLeaves chooses a worker that a new worker set takes away
// before the choice is entered: the request goes to it all the same, where it is
// booked, and neither nowhere nor to the worker that it tried before.
func TestPlacedAtOneThatLeaves(t *testing.T) {
	d := &common{ledger: ledger.New(), epoch: time.Now().Add(-time.Second), changed: func() {}}
	d.metrics = metrics.New("", func() float64 { return 0 })
	p := fleet.NewPool("p")
	w := &fleet.Worker{ID: "p/1", Pool: p}
	w.Acct = &ledger.Worker{ID: w.ID, Of: w}
	d.ledger.SetGroup(&p.Group, ledger.LeastKV, []*ledger.Worker{w.Acct})
	d.ledger.SetWorker(w.Acct, 1, true, 60_000, d.now())
	x := &exchange{d: d, asked: asked{pool: p}, booking: booking{Claim: wait.Claim{Ask: ledger.Ask{Prompt: 10, Now: d.now()}}}}
	x.booking.worker.Store(&fleet.Worker{ID: "p/0", Pool: p})
	verdict, reason := d.ledger.Pick(&p.Group, &x.booking.Ask, &x.booking.Charge)
	if verdict != ledger.Picked {
		t.Fatalf("the worker is not to be had: %v", verdict)
	}
	d.ledger.SetGroup(&p.Group, ledger.LeastKV, nil)
	x.placed(reason)
	if got := x.booking.worker.Load(); got != w {
		t.Errorf("it goes to %s", got.ID)
	}
}

// TestRememberedTwice: that an engine has a prompt in its cache is entered when it
// is sent there, or when a worker of ours has computed it, and once more when it
// was last used, not at every step between.
func TestRememberedTwice(t *testing.T) {
	f := func(own bool, sent, computed int) {
		d := &common{ledger: ledger.New(), epoch: time.Now().Add(-time.Second), changed: func() {}}
		d.metrics = metrics.New("", func() float64 { return 0 })
		p := fleet.NewPool("p")
		p.Prefix.Store(ledger.NewPrefixTable(1 << 20))
		w := &fleet.Worker{ID: "p/1", Pool: p}
		w.Own.Store(own)
		w.Acct = &ledger.Worker{ID: w.ID, Of: w}
		p.Untold = map[*fleet.Worker][]byte{}
		d.ledger.SetGroup(&p.Group, ledger.LeastKV, []*ledger.Worker{w.Acct})
		d.ledger.SetWorker(w.Acct, 1, true, 60_000, d.now())
		x := &exchange{d: d, asked: asked{pool: p}, booking: booking{own: own, chunks: []uint64{7}, Claim: wait.Claim{Ask: ledger.Ask{Prompt: 1000, Now: d.now()}}}}
		_, reason := d.ledger.Pick(&p.Group, &x.booking.Ask, &x.booking.Charge)
		x.placed(reason)
		if got := len(p.Untold[w]) / 8; got != sent {
			t.Errorf("ours %v: when it is sent, it was entered %d times; want %d", own, got, sent)
		}
		x.booking.computed(p)
		if got := len(p.Untold[w]) / 8; got != computed {
			t.Errorf("ours %v: when it is computed, it was entered %d times; want %d", own, got, computed)
		}
	}
	f(false, 1, 1)
	f(true, 0, 1)
}
