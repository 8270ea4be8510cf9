package ledger

import "testing"

// TestSharedOnce books a prefix that live requests have in common once, and
// releases it with the last of them.
func TestSharedOnce(t *testing.T) {
	l, g, ws := fleet(1, 100_000)
	chain := func(own uint64) (out []uint64) {
		for i := range uint64(8) {
			out = append(out, (i+1)<<4)
		}
		return append(out, own<<4)
	}
	book := func(own uint64) *Charge {
		c := &Charge{}
		if v, _ := l.Pick(g, &Ask{Prompt: 950, Expect: 100, Chunks: chain(own), ChunkTokens: 100, Now: 5}, c); v != Picked {
			t.Fatal("not picked")
		}
		return c
	}
	f := func(what string, want int64) {
		t.Helper()
		if got := l.Account(ws[0], 6).KV; got != want {
			t.Errorf("%s: %d tokens are booked; want %d", what, got, want)
		}
	}
	a := book(100)
	f("one request", 1050)
	b := book(101)
	f("two that share 800 tokens", 2*1050-800)
	l.Grow(b, 300)
	f("one has grown past what was expected", 2*1050-800+300+300/16+16-100)
	l.Release(a, Served, 7)
	f("the first has gone", 950+300+300/16+16)
	l.Release(b, Served, 8)
	f("both have gone", 0)
}

// TestSharedRoom takes a request that fits only because its prompt is there.
func TestSharedRoom(t *testing.T) {
	l, g, ws := fleet(1, 1000)
	l.Report(ws[0], 1, Report{At: 4, Used: -1, HasPrefill: true, Progress: -1})
	chunks := []uint64{1 << 4, 2 << 4, 3 << 4, 4 << 4, 5 << 4, 6 << 4, 7 << 4, 8 << 4}
	ask := &Ask{Prompt: 800, Expect: 60, Chunks: chunks, ChunkTokens: 100, Now: 5}
	if v, _ := l.Pick(g, ask, &Charge{}); v != Picked {
		t.Fatal("not picked")
	}
	if v, _ := l.Pick(g, ask, &Charge{}); v != Full {
		t.Fatal("a prompt that is not known to be there has no room")
	}
	ask.Hits = []int32{800}
	if v, _ := l.Pick(g, ask, &Charge{}); v != Picked {
		t.Fatal("a prompt that is there needs room for its answer alone")
	}
}

// TestElsewhere weighs what another door has like this door's own charges.
func TestElsewhere(t *testing.T) {
	l, g, ws := fleet(2, 10_000)
	l.SetElsewhere(ws[0], 1, Elsewhere{KV: 9000, Prefill: 8000, Resident: 9000, InFlight: 4})
	l.Report(ws[0], 1, Report{At: 3, Used: 9500, Own: 0, Others: -1, Progress: -1})
	if got := l.Account(ws[0], 4).Foreign; got != 500 {
		t.Errorf("foreign is %d; want what no door has sent, 500", got)
	}
	for range 4 {
		var c Charge
		if l.Pick(g, &Ask{Prompt: 100, Expect: 10, Now: 5}, &c); c.Worker() != ws[1] {
			t.Error("the worker that the other door has filled was picked")
		}
	}
	l.SetElsewhere(ws[0], 7, Elsewhere{})
	if got := l.Account(ws[0], 4).Elsewhere.KV; got != 9000 {
		t.Errorf("totals of another generation were taken: %d", got)
	}
	l.SetWorker(ws[0], 2, true, 10_000, 6)
	if got := l.Account(ws[0], 6).Elsewhere; got != (Elsewhere{}) {
		t.Errorf("a new generation begins with %+v", got)
	}
}

// TestCredit believes a worker less whose cache never has what it should.
func TestCredit(t *testing.T) {
	l, g, ws := fleet(2, 100_000)
	for range 40 {
		var c Charge
		l.Pick(g, &Ask{Prompt: 4000, Expect: 10, Hits: []int32{4000, 0}, Prefer: ws[0], Now: 5}, &c)
		l.First(&c, 1e9)
		l.Settle(&c, 4000, 0)
		l.Release(&c, Served, 1e9)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := ws[0].cached(4000); got > 800 {
		t.Errorf("after 40 answers without a hit %d of 4000 tokens are believed cached", got)
	}
	if got := ws[1].cached(4000); got != 4000 {
		t.Errorf("another worker is believed %d of 4000", got)
	}
}
