package ledger

import (
	"testing"

	"pgregory.net/rapid"
)

// TestBookedOnce sends an engine that computes prompts as they come more than it could
// hold at once: what waits there holds nothing yet, and when a prompt is begun the
// engine knows better than what is booked for its whole answer.
func TestBookedOnce(t *testing.T) {
	l, g, ws := fleet(2, 1000)
	for _, w := range ws {
		l.Report(w, 1, Report{At: 4, Used: 900, Own: -1, Others: -1, Running: 3, Waiting: 0, Progress: -1})
	}
	for i := range 10 {
		if v, _ := l.Pick(g, &Ask{Prompt: 400, Expect: 500, Now: 5}, &Charge{}); v != Picked {
			t.Fatalf("request %d: %v", i, v)
		}
	}
}

// TestBeginsFirst sends a request, where it is to wait behind others anyway, to the
// engine whose prompts will be done first.
func TestBeginsFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, g, ws := fleet(rapid.IntRange(2, 6).Draw(t, "workers"), 1<<40)
		l.SetGroup(g, Policy(rapid.IntRange(0, 1).Draw(t, "policy")), ws)
		left := map[*Worker]int64{}
		least := int64(endless)
		for _, w := range ws {
			l.SetRates(w, Rates{Prefill: 1000})
			for range rapid.IntRange(0, 4).Draw(t, "prompts") {
				prompt := rapid.Int64Range(1, 5000).Draw(t, "prompt")
				l.Pick(g, &Ask{Prompt: prompt, Prefer: w, Now: 1}, &Charge{})
				left[w] += prompt
			}
			least = min(least, left[w])
		}
		c := &Charge{}
		if v, _ := l.Pick(g, &Ask{Prompt: 100, Now: 1}, c); v != Picked {
			t.Fatal(v)
		}
		// What is within a hundredth is equal.
		if got := left[c.worker]; float64(got) > 1.02*float64(least+100)+2 {
			t.Errorf("%d tokens are before it; %d elsewhere", got, least)
		}
	})
}

// TestHeldOnlyWhereAllAreBusy keeps a request at the door where every engine has enough to
// do, and sends it where one has not: to that one by the policies that go by turns or by
// requests, and where most of its prompt is cached, to a busy one by the others.
func TestHeldOnlyWhereAllAreBusy(t *testing.T) {
	f := func(name string, policy Policy, prompts [2]int64, hits []int32, want int) {
		t.Helper()
		l, g, ws := fleet(2, 50_000)
		l.SetGroup(g, policy, ws)
		for i, w := range ws {
			l.SetRates(w, Rates{Prefill: 1000})
			if prompts[i] > 0 {
				l.Pick(g, &Ask{Prompt: prompts[i], Prefer: w, Now: 1}, &Charge{})
			}
			l.Report(w, 1, Report{At: 2, Used: -1, Own: -1, Others: -1, Running: 1, Waiting: 1, Progress: -1})
		}
		c := &Charge{}
		v, _ := l.Pick(g, &Ask{Prompt: 1000, Hits: hits, Now: 3}, c)
		if want < 0 && v != Full || want >= 0 && (v != Picked || c.worker != ws[want]) {
			t.Errorf("%s: %v, and not at %d", name, v, want)
		}
	}
	f("both are busy", LeastKV, [2]int64{400, 500}, nil, -1)
	f("both are busy, by turns", RoundRobin, [2]int64{400, 500}, nil, -1)
	f("one has little", LeastKV, [2]int64{400, 100}, nil, 1)
	f("one has nothing, by turns", RoundRobin, [2]int64{400, 0}, nil, 1)
	f("one has nothing, by requests", LeastInflight, [2]int64{400, 0}, nil, 1)
	f("a busy one has the prompt", LeastKV, [2]int64{400, 0}, []int32{990, 0}, 0)
	f("a busy one has the prompt, and the other is busy too", LeastKV, [2]int64{400, 500}, []int32{990, 0}, -1)
}

// TestOthersWait goes by what a request takes where others wait at the door: one that a
// worker has the prompt of waits for that worker, and leaves the others to those.
func TestOthersWait(t *testing.T) {
	f := func(behind int, want int) {
		t.Helper()
		l, g, ws := fleet(2, 50_000)
		for _, w := range ws {
			l.SetRates(w, Rates{Prefill: 1000})
		}
		l.Pick(g, &Ask{Prompt: 2000, Prefer: ws[0], Now: 1}, &Charge{})
		c := &Charge{}
		l.Pick(g, &Ask{Prompt: 1000, Hits: []int32{990, 0}, Behind: behind, Now: 3}, c)
		if c.worker != ws[want] {
			t.Errorf("%d wait behind it: it is sent to %s", behind, c.worker.ID)
		}
	}
	f(0, 1)
	f(8, 0)
}

// TestComputedTwice goes by what comes: where requests follow one another, a prompt that one
// worker has is not computed once more behind others elsewhere, though it would
// begin there a little sooner. An idle worker takes it all the same, and no
// traffic keeps a new prompt from where it begins first.
func TestComputedTwice(t *testing.T) {
	f := func(name string, rate, there, elsewhere int64, hits []int32, want int) {
		t.Helper()
		l, g, ws := fleet(2, 1<<40)
		for _, w := range ws {
			l.SetRates(w, Rates{Prefill: 1000})
		}
		now := int64(1)
		for range 200 {
			now += 1e9 / rate
			c := &Charge{}
			l.Pick(g, &Ask{Prompt: 1, Now: now}, c)
			l.Release(c, Served, now)
		}
		for i, before := range []int64{there, elsewhere} {
			if before > 0 {
				l.Pick(g, &Ask{Prompt: before, Prefer: ws[i], Now: now}, &Charge{})
			}
		}
		c := &Charge{}
		l.Pick(g, &Ask{Prompt: 1000, Hits: hits, Now: now}, c)
		if c.worker != ws[want] {
			t.Errorf("%s: it is sent to %s", name, c.worker.ID)
		}
	}
	cached, no := []int32{900, 0}, []int32(nil)
	f("requests are rare", 1, 2000, 600, cached, 1)
	f("requests are many", 20, 2000, 600, cached, 0)
	f("the other is idle", 20, 2000, 0, cached, 1)
	f("the prompt is new", 20, 2000, 600, no, 1)
}
