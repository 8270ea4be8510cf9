package balancer

import (
	"fmt"
	"math"
	"testing"
	"time"

	"roundhouse/balancer/ledger"
	"roundhouse/configs"
)

// TestFairShares lets keys wait at a worker that has room for one request at a
// time: each gets tokens by its weight, however long its prompts are, and a
// higher class goes before all others.
func TestFairShares(t *testing.T) {
	d := &Door{ledger: ledger.New(), epoch: time.Now().Add(-time.Second)}
	acct := &ledger.Worker{ID: "p/1"}
	p := newPool("p")
	d.ledger.SetGroup(&p.group, ledger.LeastKV, []*ledger.Worker{acct})
	d.ledger.SetWorker(acct, 1, true, 60_000, d.now())
	add := func(name string, weight, priority int, prompt int64) *waiter {
		x := &exchange{d: d, asked: asked{pool: p, priority: priority, key: &key{name: name, cfg: configs.Key{Weight: weight}}}}
		x.booking.ask = ledger.Ask{Prompt: prompt, Expect: 31_000 - prompt/2, Now: d.now()}
		w := p.queue.add(x, math.MaxInt32)
		if w == nil {
			t.Fatal("the queue is full")
		}
		return w
	}
	var hold ledger.Charge
	fill := func() {
		if v, _ := d.ledger.Pick(&p.group, &ledger.Ask{Prompt: 50_000, Now: d.now()}, &hold); v != ledger.Picked {
			t.Fatalf("the worker is not to be had: %v", v)
		}
	}
	fill()
	waiting := map[string][]*waiter{}
	for i := range 400 {
		waiting["long"] = append(waiting["long"], add("long", 1, priorityNormal, 20_000))
		waiting["short"] = append(waiting["short"], add("short", 1, priorityNormal, 500+int64(i)))
		waiting["heavy"] = append(waiting["heavy"], add("heavy", 2, priorityNormal, 8000))
	}
	first := add("vip", 1, priorityHigh, 1000)
	tokens, total := map[string]int64{}, int64(0)
	d.ledger.Release(&hold, ledger.Neutral, d.now())
	for n := range 300 {
		p.pump(d)
		var got *waiter
		for name, list := range waiting {
			for i, w := range list {
				if len(w.granted) > 0 {
					got = w
					tokens[name] += w.x.booking.ask.Prompt + w.x.booking.ask.Expect
					total += w.x.booking.ask.Prompt + w.x.booking.ask.Expect
					waiting[name] = append(list[:i:i], list[i+1:]...)
					break
				}
			}
		}
		if n == 0 {
			if len(first.granted) == 0 || got != nil {
				t.Fatal("the high class was not served first, alone")
			}
			got = first
		}
		if got == nil {
			t.Fatalf("nobody was served in round %d", n)
		}
		if !d.ledger.Release(&got.x.booking.charge, ledger.Served, d.now()) {
			t.Fatal("what was granted is not charged")
		}
	}
	for name, want := range map[string]float64{"long": .25, "short": .25, "heavy": .5} {
		if share := float64(tokens[name]) / float64(total); math.Abs(share-want) > .03 {
			t.Errorf("%s got %.3f of the tokens; want %.2f: %v", name, share, want, tokens)
		}
	}
}

// TestKeyBuckets spends and refills a key's limits, and overflows none.
func TestKeyBuckets(t *testing.T) {
	k := &key{name: "a", cfg: configs.Key{TokensPerMinute: 600, MaxConcurrent: 2}, use: &use{}}
	now := time.Unix(1000, 0)
	f := func(name string, after time.Duration, want string) {
		t.Helper()
		now = now.Add(after)
		got := ""
		if f := k.enter(now); f != nil {
			got = fmt.Sprint(f.status, " ", f.retryAfter)
		}
		if got != want {
			t.Errorf("%s: got %q; want %q", name, got, want)
		}
	}
	f("the first", 0, "")
	k.charge(500) // as estimated
	f("the second", 0, "")
	f("a third at once", 0, "429 1")
	k.leave()
	k.charge(200 - 500) // as it really was: 400 are left
	k.charge(410)
	f("tokens are used up, by ten", 0, "429 2")
	f("a second and a half later", 1500*time.Millisecond, "")
	k.charge(math.MaxInt64)
	k.charge(math.MaxInt64)
	k.leave()
	f("far beyond the limit", time.Hour, "429 86400")
	k.charge(math.MinInt64)
	k.charge(math.MinInt64)
	if k.tokens.level != 600 {
		t.Errorf("what is given back fills the bucket to %g; want 600", k.tokens.level)
	}
}

// TestSameOnEveryDoor: where a session goes depends on nothing that a door
// has of its own, and a target that goes moves its own sessions alone.
func TestSameOnEveryDoor(t *testing.T) {
	cfg := configs.Route{Name: "r", Targets: []configs.Target{{Model: "a", Weight: 50}, {Model: "b", Weight: 30}, {Model: "c", Weight: 20}}}
	one, other := makeRoutes([]configs.Route{cfg}, &view{})["r"], makeRoutes([]configs.Route{cfg}, &view{})["r"]
	all := func(string) bool { return true }
	const n = 20_000
	count := map[int]int{}
	for i := range n {
		s := fmt.Sprint("session ", i)
		at := one.choose(s, all)
		count[at]++
		other.choose("", all) // its turns are elsewhere
		if got := other.choose(s, all); got != at {
			t.Fatalf("%s goes to %d and %d", s, at, got)
		}
		left := one.choose(s, func(model string) bool { return model != "c" })
		if at != 2 && left != at {
			t.Fatalf("%s moved from %d to %d when another target went", s, at, left)
		}
	}
	for i, target := range cfg.Targets {
		share := float64(target.Weight) / 100
		if sigma := math.Sqrt(n * share * (1 - share)); math.Abs(float64(count[i])-n*share) > 3*sigma {
			t.Errorf("%s has %d of %d sessions; want %.0f ± %.0f", target.Model, count[i], n, n*share, 3*sigma)
		}
	}
	turns := map[int]int{}
	for range 100 {
		turns[one.choose("", all)]++
	}
	if turns[0] != 50 || turns[1] != 30 || turns[2] != 20 {
		t.Errorf("100 turns are shared as %v", turns)
	}
}

// TestBoundHoldsNobodyUp lets a request wait for the one worker that it is bound
// to: those behind it go to the others meanwhile, none takes the room that becomes
// free at that worker before it does, and one whose worker is only under trial goes
// elsewhere at once.
func TestBoundHoldsNobodyUp(t *testing.T) {
	d := &Door{ledger: ledger.New(), epoch: time.Now().Add(-time.Second)}
	one, two := &ledger.Worker{ID: "p/1"}, &ledger.Worker{ID: "p/2"}
	p := newPool("p")
	p.workers.Store(&[]*worker{{acct: one}, {acct: two}})
	d.ledger.SetGroup(&p.group, ledger.LeastKV, []*ledger.Worker{one, two})
	d.ledger.SetWorker(one, 1, true, 60_000, d.now())
	d.ledger.SetWorker(two, 1, true, 60_000, d.now())
	book := func(prompt int64) *ledger.Charge {
		c := &ledger.Charge{}
		if v, _ := d.ledger.Pick(&p.group, &ledger.Ask{Prompt: prompt, Now: d.now(), Prefer: one}, c); v != ledger.Picked {
			t.Fatalf("the worker is not to be had: %v", v)
		}
		return c
	}
	long, short := book(50_000), book(9000)
	add := func(name string, ask ledger.Ask, bound bool) *waiter {
		return p.queue.add(&exchange{d: d, asked: asked{pool: p, priority: priorityNormal, key: &key{name: name}}, booking: booking{ask: ask, bound: bound}}, 10)
	}
	bound := add("a", ledger.Ask{Prompt: 20_000, Prefer: one}, true)
	free := add("b", ledger.Ask{Prompt: 50_000}, false)
	p.pump(d)
	if len(bound.granted) != 0 || len(free.granted) != 1 || free.x.booking.charge.Worker() != two {
		t.Fatalf("bound: %d, free: %d, at %v", len(bound.granted), len(free.granted), free.x.booking.charge.Worker())
	}
	next := add("a", ledger.Ask{Prompt: 20_100}, false)
	d.ledger.Release(short, ledger.Neutral, d.now())
	p.pump(d)
	if len(bound.granted)+len(next.granted) != 0 {
		t.Errorf("bound: %d, the next: %d", len(bound.granted), len(next.granted))
	}
	d.ledger.Release(long, ledger.Neutral, d.now())
	p.pump(d)
	if len(bound.granted) != 1 || bound.x.booking.charge.Worker() != one || len(next.granted) != 1 {
		t.Errorf("bound: %d, the next: %d", len(bound.granted), len(next.granted))
	}
	tried := add("b", ledger.Ask{Prompt: 9000, Prefer: one, Tried: []ledger.Try{{Worker: one, Generation: 1}}}, false)
	p.pump(d)
	if len(tried.granted) != 1 || tried.x.booking.charge.Worker() != two {
		t.Errorf("on trial: %d", len(tried.granted))
	}
}

// TestTriedHoldsNobodyUp lets a request wait whose tried worker has room and whose
// other one has none: those behind it go to the first, none of them takes the room
// that becomes free at the other, and a prompt that only a worker kept from it is
// long enough for is not refused.
func TestTriedHoldsNobodyUp(t *testing.T) {
	d := &Door{ledger: ledger.New(), epoch: time.Now().Add(-time.Second)}
	one, two := &ledger.Worker{ID: "p/1"}, &ledger.Worker{ID: "p/2"}
	p := newPool("p")
	p.workers.Store(&[]*worker{{acct: one}, {acct: two}})
	d.ledger.SetGroup(&p.group, ledger.LeastKV, []*ledger.Worker{one, two})
	for i, w := range []*ledger.Worker{one, two} {
		d.ledger.SetWorker(w, 1, true, 60_000, d.now())
		d.ledger.Report(w, 1, ledger.Report{At: d.now(), Used: -1, Own: -1, Others: -1, Running: -1, Waiting: -1, Progress: -1, MaxLen: []int64{8000, 60_000}[i]})
	}
	full := &ledger.Charge{}
	if v, _ := d.ledger.Pick(&p.group, &ledger.Ask{Prompt: 50_000, Now: d.now(), Prefer: two}, full); v != ledger.Picked {
		t.Fatalf("the worker is not to be had: %v", v)
	}
	add := func(name string, prompt int64, tried ...ledger.Try) *waiter {
		return p.queue.add(&exchange{d: d, asked: asked{pool: p, priority: priorityNormal, key: &key{name: name}}, booking: booking{ask: ledger.Ask{Prompt: prompt, Tried: tried}, tried: tried}}, 10)
	}
	again := add("a", 12_000, ledger.Try{Worker: one, Generation: 1})
	p.pump(d)
	behind, long := add("b", 7000), add("c", 20_000)
	p.pump(d)
	if len(again.granted) != 0 || len(behind.granted) != 1 || behind.x.booking.charge.Worker() != one || len(long.granted) != 0 {
		t.Fatalf("tried before: %d, behind it: %d, a long one: %d", len(again.granted), len(behind.granted), len(long.granted))
	}
	d.ledger.Release(full, ledger.Neutral, d.now())
	p.pump(d)
	if len(again.granted) != 1 || again.x.booking.charge.Worker() != two || len(long.granted) != 1 {
		t.Errorf("tried before: %d, a long one: %d", len(again.granted), len(long.granted))
	}
}
