package ledger

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCurve learns from prompts alone how much more a long one takes, whatever
// else slows some of them down.
func TestCurve(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	f := func(name string, token, pair float64) {
		t.Helper()
		var c curve
		for range 4000 {
			n := 100 + rng.Int64N(6000)
			took := token*float64(n) + pair*float64(n)*float64(n)/2
			c.learn(n, took*(1+0.5*rng.ExpFloat64()))
		}
		exact := curve{bend: pair / token}
		for _, n := range []int64{500, 2000, 6000} {
			got, want := float64(c.work(n, 0))/float64(c.work(500, 0)), float64(exact.work(n, 0))/float64(exact.work(500, 0))
			if math.Abs(got/want-1) > 0.25 {
				t.Errorf("seed %d, %s: a prompt of %d tokens counts as %.2f of 500; want %.2f", seed, name, n, got, want)
			}
		}
	}
	f("a straight line", 1e-3, 0)
	f("a small processor", 1.4e-3, 2.9e-6)
	f("an accelerator", 6e-5, 1e-9)
}

// TestClasses orders prompts by length.
func TestClasses(t *testing.T) {
	last := 0
	for n := int64(0); n < 1<<20; n += 1 + n/64 {
		c := classOf(n)
		if c < last || c >= classes || c > last+1 {
			t.Fatalf("%d tokens are of class %d, fewer are of %d", n, c, last)
		}
		last = c
	}
	if last != classes-1 {
		t.Errorf("the longest are of class %d of %d", last, classes)
	}
}

// TestShortestFirst sends a short prompt past a long one, where the worker does
// so too, and behind it where the worker computes them as they come.
func TestShortestFirst(t *testing.T) {
	f := func(name string, ours bool, want int) {
		t.Helper()
		l, g, ws := fleet(2, 1<<20)
		for _, w := range ws {
			l.Report(w, 1, Report{At: 1, Used: -1, HasPrefill: ours, Progress: -1})
		}
		book := func(prompt int64, at *Worker) *Worker {
			var c Charge
			if v, _ := l.Pick(g, &Ask{Prompt: prompt, Expect: 10, Prefer: at, Now: 2}, &c); v != Picked {
				t.Fatal("not picked")
			}
			return c.Worker()
		}
		book(20_000, ws[0])
		for range 6 {
			book(500, ws[1])
		}
		if got := book(500, nil); got != ws[want] {
			t.Errorf("%s: the short prompt went to %s", name, got.ID)
		}
		if got := book(20_000, nil); got != ws[1] {
			t.Errorf("%s: the long prompt went to %s", name, got.ID)
		}
	}
	f("the shortest first", true, 0)
	f("as they come", false, 1)
}

// TestTurn puts the shorter of those that wait first, and lets none wait for
// good.
func TestTurn(t *testing.T) {
	l, g, _ := fleet(1, 1000)
	long := l.Rank(g, 8000, 1e9)
	if short := l.Rank(g, 100, 2e9); short >= long {
		t.Errorf("a short prompt a second later goes at %.0f, the long one at %.0f", short, long)
	}
	if late := l.Rank(g, 100, 100e9); late <= long {
		t.Errorf("a short prompt that comes much later goes at %.0f, the long one at %.0f", late, long)
	}
}

// TestPredicted tells plugins the times that the choice itself goes by, and none
// of a worker that cannot be asked.
func TestPredicted(t *testing.T) {
	l, g, ws := fleet(3, 1<<20)
	var first Charge
	if v, _ := l.Pick(g, &Ask{Prompt: 4000, Expect: 100, Now: 2, Prefer: ws[1]}, &first); v != Picked {
		t.Fatal(v)
	}
	l.SetWorker(ws[2], ws[2].generation, false, 1<<20, 2)
	a := Ask{Prompt: 1000, Expect: 100, Now: 3}
	got := l.Predicted(nil, g, &a)
	var c Charge
	if v, _ := l.Pick(g, &a, &c); v != Picked {
		t.Fatal(v)
	}
	if len(got) != 3 || got[0] <= 0 || got[1] <= got[0] || got[2] != 0 {
		t.Fatalf("predicted %v; want the second later than the first and nothing of the third", got)
	}
	for _, w := range l.Weighed(nil, g, ws[0], 2, 3) {
		at := map[string]int{ws[0].ID: 0, ws[1].ID: 1}[w.ID]
		if w.Wait != got[at] {
			t.Errorf("%s: predicted %v, chosen by %v", w.ID, got[at], w.Wait)
		}
	}
}

// TestUnderWay follows a prompt at an engine that computes them as they come: the
// next one waits for what is left of it, and for all of it again where it takes
// far longer than it was believed to.
func TestUnderWay(t *testing.T) {
	l, g, ws := fleet(1, 50_000)
	l.SetRates(ws[0], Rates{Prefill: 1000})
	l.Report(ws[0], 1, Report{At: 1, Used: -1, Running: -1, Waiting: -1, Progress: -1})
	var c Charge
	if v, _ := l.Pick(g, &Ask{Prompt: 4000, Now: 1}, &c); v != Picked {
		t.Fatal(v)
	}
	wait := func(seconds float64) float64 {
		now := 1 + int64(seconds*1e9)
		l.Report(ws[0], 1, Report{At: now, Used: -1, Running: -1, Waiting: -1, Progress: -1})
		return l.Predicted(nil, g, &Ask{Prompt: 1, Now: now})[0]
	}
	for at, want := range map[float64]float64{0: 4, 1: 3, 3.5: 0.5, 4: 0, 5: 1, 8: 4, 100: 4} {
		if got := wait(at); got < want || got > want*1.05+0.01 {
			t.Errorf("after %v s: the next one waits for %.2f s; want %v", at, got, want)
		}
	}
	l.First(&c, 4e9)
	if got := wait(4); got > 0.01 {
		t.Errorf("after its first token: the next one waits for %.2f s", got)
	}
}

// TestWaitsAtTheDoor holds requests back from engines that compute prompts as
// they come and say that requests wait there already.
func TestWaitsAtTheDoor(t *testing.T) {
	f := func(name string, change func(r *Report, a *Ask), behind bool, want Verdict) {
		t.Helper()
		l, g, ws := fleet(2, 50_000)
		for i, w := range ws {
			l.SetRates(w, Rates{Prefill: 1000})
			if v, _ := l.Pick(g, &Ask{Prompt: 440 - 40*int64(i), Prefer: w, Now: 1}, &Charge{}); v != Picked {
				t.Fatal(v)
			}
		}
		r := Report{At: 2, Used: -1, Own: -1, Others: -1, Running: 1, Waiting: 1, Progress: -1}
		a := &Ask{Prompt: 100, Now: 2}
		change(&r, a)
		l.Report(ws[0], 1, r)
		if !behind {
			r.Waiting = 0
		}
		l.Report(ws[1], 1, r)
		if v, _ := l.Pick(g, a, &Charge{}); v != want {
			t.Errorf("%s: %v; want %v", name, v, want)
		}
	}
	f("both have others waiting", func(*Report, *Ask) {}, true, Full)
	f("the better one has none waiting", func(*Report, *Ask) {}, false, Picked)
	f("it wants a worker even so", func(_ *Report, a *Ask) { a.Eager = true }, true, Picked)
	f("a resume or a trial", func(_ *Report, a *Ask) { a.Force = true }, true, Picked)
	f("workers that take the shortest first", func(r *Report, _ *Ask) { r.HasPrefill = true }, true, Picked)
	f("reports of some seconds ago", func(r *Report, a *Ask) { r.At = -3e9 }, true, Full)
	f("reports of long ago", func(r *Report, a *Ask) { r.At = -11e9 }, true, Picked)
	f("little is left", func(_ *Report, a *Ask) { a.Now += 2e8 }, true, Picked)
	f("what waits is not said", func(r *Report, _ *Ask) { r.Waiting = -1 }, true, Picked)
}
