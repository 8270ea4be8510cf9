package wait

import (
	"math"
	"slices"
	"testing"

	"roundhouse/balancer/ledger"
	"roundhouse/balancer/surface"
)

// TestFairShares lets keys wait at a worker that has room for one request at a
// time: each gets tokens by its weight, however long its prompts are, and a
// higher class goes before all others.
func TestFairShares(t *testing.T) {
	l, now := ledger.New(), int64(1e9)
	acct := &ledger.Worker{ID: "p/1"}
	var q Queue
	var group ledger.Group
	room := &Room{Ledger: l, Group: &group, Now: func() int64 { return now }, Workers: slices.Values([]*ledger.Worker{acct})}
	l.SetGroup(&group, ledger.LeastKV, []*ledger.Worker{acct})
	l.SetWorker(acct, 1, true, 40_000, now)
	l.Report(acct, 1, ofOurs(now))
	add := func(name string, weight, priority int, prompt int64) *Waiter {
		c := &Claim{Ask: ledger.Ask{Prompt: prompt, Expect: 31_000 - prompt/2, Now: now}}
		w := q.Add(c, Place{Class: priority, Key: name, Weight: float64(weight), Rank: l.Rank(&group, prompt, now)}, math.MaxInt32)
		if w == nil {
			t.Fatal("the queue is full")
		}
		return w
	}
	var hold ledger.Charge
	fill := func() {
		if v, _ := l.Pick(&group, &ledger.Ask{Prompt: 35_000, Now: now}, &hold); v != ledger.Picked {
			t.Fatalf("the worker is not to be had: %v", v)
		}
	}
	fill()
	waiting := map[string][]*Waiter{}
	for i := range 400 {
		waiting["long"] = append(waiting["long"], add("long", 1, surface.Normal, 20_000))
		waiting["short"] = append(waiting["short"], add("short", 1, surface.Normal, 500+int64(i)))
		waiting["heavy"] = append(waiting["heavy"], add("heavy", 2, surface.Normal, 8000))
	}
	first := add("vip", 1, surface.High, 1000)
	tokens, total := map[string]int64{}, int64(0)
	l.Release(&hold, ledger.Neutral, now)
	for n := range 300 {
		q.Pump(room)
		var got *Waiter
		for name, list := range waiting {
			for i, w := range list {
				if len(w.Granted) > 0 {
					got = w
					tokens[name] += w.claim.Ask.Prompt + w.claim.Ask.Expect
					total += w.claim.Ask.Prompt + w.claim.Ask.Expect
					waiting[name] = append(list[:i:i], list[i+1:]...)
					break
				}
			}
		}
		if n == 0 {
			if len(first.Granted) == 0 || got != nil {
				t.Fatal("the high class was not served first, alone")
			}
			got = first
		}
		if got == nil {
			t.Fatalf("nobody was served in round %d", n)
		}
		if !l.Release(&got.claim.Charge, ledger.Served, now) {
			t.Fatal("what was granted is not charged")
		}
	}
	for name, want := range map[string]float64{"long": .25, "short": .25, "heavy": .5} {
		if share := float64(tokens[name]) / float64(total); math.Abs(share-want) > .03 {
			t.Errorf("%s got %.3f of the tokens; want %.2f: %v", name, share, want, tokens)
		}
	}
}

// TestBoundHoldsNobodyUp lets a request wait for the one worker that it is bound
// to: those behind it go to the others meanwhile, none takes the room that becomes
// free at that worker before it does, and one whose worker is only under trial goes
// elsewhere at once.
func TestBoundHoldsNobodyUp(t *testing.T) {
	l, now := ledger.New(), int64(1e9)
	one, two := &ledger.Worker{ID: "p/1"}, &ledger.Worker{ID: "p/2"}
	var q Queue
	var group ledger.Group
	room := &Room{Ledger: l, Group: &group, Now: func() int64 { return now }, Workers: slices.Values([]*ledger.Worker{one, two})}
	l.SetGroup(&group, ledger.LeastKV, []*ledger.Worker{one, two})
	l.SetWorker(one, 1, true, 60_000, now)
	l.SetWorker(two, 1, true, 60_000, now)
	l.Report(one, 1, ofOurs(now))
	l.Report(two, 1, ofOurs(now))
	book := func(prompt int64) *ledger.Charge {
		c := &ledger.Charge{}
		if v, _ := l.Pick(&group, &ledger.Ask{Prompt: prompt, Now: now, Prefer: one}, c); v != ledger.Picked {
			t.Fatalf("the worker is not to be had: %v", v)
		}
		return c
	}
	long, short := book(50_000), book(9000)
	add := func(name string, ask ledger.Ask, bound bool) *Waiter {
		return q.Add(&Claim{Ask: ask, Bound: bound}, Place{Class: surface.Normal, Key: name, Weight: 1, Rank: l.Rank(&group, ask.Prompt, now)}, 10)
	}
	bound := add("a", ledger.Ask{Prompt: 20_000, Prefer: one}, true)
	free := add("b", ledger.Ask{Prompt: 50_000}, false)
	q.Pump(room)
	if len(bound.Granted) != 0 || len(free.Granted) != 1 || free.claim.Charge.Worker() != two {
		t.Fatalf("bound: %d, free: %d, at %v", len(bound.Granted), len(free.Granted), free.claim.Charge.Worker())
	}
	next := add("a", ledger.Ask{Prompt: 20_100}, false)
	l.Release(short, ledger.Neutral, now)
	q.Pump(room)
	if len(bound.Granted)+len(next.Granted) != 0 {
		t.Errorf("bound: %d, the next: %d", len(bound.Granted), len(next.Granted))
	}
	l.Release(long, ledger.Neutral, now)
	q.Pump(room)
	if len(bound.Granted) != 1 || bound.claim.Charge.Worker() != one || len(next.Granted) != 1 {
		t.Errorf("bound: %d, the next: %d", len(bound.Granted), len(next.Granted))
	}
	tried := add("b", ledger.Ask{Prompt: 9000, Prefer: one, Tried: []ledger.Try{{Worker: one, Generation: 1}}}, false)
	q.Pump(room)
	if len(tried.Granted) != 1 || tried.claim.Charge.Worker() != two {
		t.Errorf("on trial: %d", len(tried.Granted))
	}
}

// TestTriedHoldsNobodyUp lets a request wait whose tried worker has room and whose
// other one has none: those behind it go to the first, none of them takes the room
// that becomes free at the other, and a prompt that only a worker kept from it is
// long enough for is not refused.
func TestTriedHoldsNobodyUp(t *testing.T) {
	l, now := ledger.New(), int64(1e9)
	one, two := &ledger.Worker{ID: "p/1"}, &ledger.Worker{ID: "p/2"}
	var q Queue
	var group ledger.Group
	room := &Room{Ledger: l, Group: &group, Now: func() int64 { return now }, Workers: slices.Values([]*ledger.Worker{one, two})}
	l.SetGroup(&group, ledger.LeastKV, []*ledger.Worker{one, two})
	for i, w := range []*ledger.Worker{one, two} {
		l.SetWorker(w, 1, true, 60_000, now)
		r := ofOurs(now)
		r.MaxLen = []int64{8000, 60_000}[i]
		l.Report(w, 1, r)
	}
	full := &ledger.Charge{}
	if v, _ := l.Pick(&group, &ledger.Ask{Prompt: 50_000, Now: now, Prefer: two}, full); v != ledger.Picked {
		t.Fatalf("the worker is not to be had: %v", v)
	}
	add := func(name string, prompt int64, tried ...ledger.Try) *Waiter {
		return q.Add(&Claim{Ask: ledger.Ask{Prompt: prompt, Tried: tried}}, Place{Class: surface.Normal, Key: name, Weight: 1, Rank: l.Rank(&group, prompt, now)}, 10)
	}
	again := add("a", 12_000, ledger.Try{Worker: one, Generation: 1})
	q.Pump(room)
	behind, long := add("b", 7000), add("c", 20_000)
	q.Pump(room)
	if len(again.Granted) != 0 || len(behind.Granted) != 1 || behind.claim.Charge.Worker() != one || len(long.Granted) != 0 {
		t.Fatalf("tried before: %d, behind it: %d, a long one: %d", len(again.Granted), len(behind.Granted), len(long.Granted))
	}
	l.Release(full, ledger.Neutral, now)
	q.Pump(room)
	if len(again.Granted) != 1 || again.claim.Charge.Worker() != two || len(long.Granted) != 1 {
		t.Errorf("tried before: %d, a long one: %d", len(again.Granted), len(long.Granted))
	}
}

// TestAmongHoldsNobodyUp lets a request wait for room at the one worker that its gateway
// has left it: it goes to no other, those behind it do, and none of them takes the room
// that becomes free there.
func TestAmongHoldsNobodyUp(t *testing.T) {
	l, now := ledger.New(), int64(1e9)
	one, two := &ledger.Worker{ID: "p/1"}, &ledger.Worker{ID: "p/2"}
	var q Queue
	var group ledger.Group
	room := &Room{Ledger: l, Group: &group, Now: func() int64 { return now }, Workers: slices.Values([]*ledger.Worker{one, two})}
	l.SetGroup(&group, ledger.LeastKV, []*ledger.Worker{one, two})
	for _, w := range []*ledger.Worker{one, two} {
		l.SetWorker(w, 1, true, 60_000, now)
		l.Report(w, 1, ofOurs(now))
	}
	full := &ledger.Charge{}
	if v, _ := l.Pick(&group, &ledger.Ask{Prompt: 50_000, Now: now, Prefer: one}, full); v != ledger.Picked {
		t.Fatalf("the worker is not to be had: %v", v)
	}
	add := func(name string, among ...*ledger.Worker) *Waiter {
		ask := ledger.Ask{Prompt: 20_000, Among: among}
		return q.Add(&Claim{Ask: ask}, Place{Class: surface.Normal, Key: name, Weight: 1, Rank: l.Rank(&group, 20_000, now)}, 10)
	}
	narrowed, behind := add("a", one), add("b")
	q.Pump(room)
	if len(narrowed.Granted) != 0 || len(behind.Granted) != 1 || behind.claim.Charge.Worker() != two {
		t.Fatalf("narrowed: %d, behind it: %d", len(narrowed.Granted), len(behind.Granted))
	}
	l.Release(full, ledger.Neutral, now)
	next := add("b")
	q.Pump(room)
	if len(narrowed.Granted) != 1 || narrowed.claim.Charge.Worker() != one {
		t.Errorf("narrowed: %d, the next: %d", len(narrowed.Granted), len(next.Granted))
	}
}

// ofOurs is what a worker of ours says that has nothing to do: such a worker is sent no
// more than it has room for.
func ofOurs(now int64) ledger.Report {
	return ledger.Report{At: now, Used: -1, Own: -1, Others: -1, Running: -1, Waiting: -1, Progress: -1, HasPrefill: true}
}
