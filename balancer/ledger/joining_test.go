package ledger

import (
	"math"
	"testing"
)

// TestSlowStart gives a worker that joins less than its share at first, and all
// of it in the end.
func TestSlowStart(t *testing.T) {
	const second, start = int64(1e9), int64(30e9)
	for _, policy := range []Policy{LeastKV, Fastest, LeastInflight} {
		f := func(age int64, least, most int) {
			t.Helper()
			l, g, ws := fleet(4, 1<<20)
			l.Configure(Breaker{}, start)
			l.SetGroup(g, policy, ws)
			joined := 1 + 100*second
			if age%2 == 0 { // it was away, or its process is just another one
				l.SetWorker(ws[3], 2, false, 1<<20, 50*second)
			}
			l.SetWorker(ws[3], 2, true, 1<<20, joined)
			for range 64 {
				if v, _ := l.Pick(g, &Ask{Prompt: 2000, Expect: 500, Now: joined + age}, &Charge{}); v != Picked {
					t.Fatal("not picked")
				}
			}
			if n := l.Account(ws[3], joined+age).InFlight; n < least || n > most {
				t.Errorf("%v: %d s after it joined a worker has %d of 64 requests; want %d to %d", policy, age/second, n, least, most)
			}
		}
		f(0, 0, 5)
		f(1, 0, 5)
		f(start/2, 4, 13)
		f(start, 15, 17)
	}
}

// TestJoinedTogether starts a whole fleet: none of it is new beside the others, so
// that what lies in whose cache counts from the beginning.
func TestJoinedTogether(t *testing.T) {
	const second = int64(1e9)
	l, g, ws := fleet(4, 50_000)
	l.Configure(Breaker{}, 30*second)
	for _, w := range ws {
		l.SetWorker(w, 2, true, 50_000, 100*second)
	}
	first := &Charge{}
	if v, _ := l.Pick(g, &Ask{Prompt: 9000, Expect: 500, Now: 101 * second}, first); v != Picked {
		t.Fatal(v)
	}
	at := first.Worker()
	l.First(first, 102*second)
	hits := make([]int32, 4)
	hits[at.index] = 9000
	again := &Charge{}
	if v, _ := l.Pick(g, &Ask{Prompt: 9000, Expect: 500, Hits: hits, Now: 102 * second}, again); v != Picked || again.Worker() != at {
		t.Errorf("the prompt that %s has in its cache went to %s", at.ID, again.Worker().ID)
	}
	if fill := l.Weighed(nil, g, at, 1, 102*second)[0].Fill; fill > 0.5 {
		t.Errorf("a worker with a fifth of its cache in use is taken for one of %.2f", fill)
	}
}

// TestEmptyGroup: a pool may have no worker, as while its only one turns, and
// says so, slow start or not.
func TestEmptyGroup(t *testing.T) {
	for _, slowStart := range []int64{0, 30e9} {
		l, g, _ := fleet(0, 0)
		l.Configure(Breaker{}, slowStart)
		for _, policy := range []Policy{LeastKV, Fastest, LeastInflight, RoundRobin} {
			l.SetGroup(g, policy, nil)
			if v, _ := l.Pick(g, &Ask{Prompt: 9, Expect: 9, Now: 5}, &Charge{}); v == Picked {
				t.Errorf("slow start %d, policy %v: a worker of none was picked", slowStart, policy)
			}
		}
	}
}

// TestBlame: a client's own mistake is not the worker's, one that has no room
// is left alone for a moment, and one that goes on failing stays out longer.
func TestBlame(t *testing.T) {
	l, g, ws := fleet(1, 100_000)
	l.Configure(Breaker{Failures: 2, Open: 1e9}, 0)
	now := int64(10)
	end := func(how Outcome) Verdict {
		c := &Charge{}
		v, _ := l.Pick(g, &Ask{Prompt: 1, Expect: 1, Now: now}, c)
		if v == Picked {
			l.Release(c, how, now)
		}
		return v
	}
	for range 10 {
		if end(Neutral) != Picked {
			t.Fatal("ten mistakes of clients took a worker out")
		}
	}
	end(Failed)
	end(Served)
	if end(Failed); l.Account(ws[0], now).Ejected != "" {
		t.Error("two failures with a success between took a worker out")
	}
	end(Served)
	end(Busy)
	if v := l.Account(ws[0], now); v.Ejected != "busy" {
		t.Errorf("a worker without room is %q", v.Ejected)
	}
	if now += 250e6; end(Served) != Picked {
		t.Error("a worker without room was out for more than a quarter of a second")
	}
	for i, open := range []int64{1e9, 2e9, 4e9, 8e9, 8e9} {
		for range 2 {
			end(Failed) // the first time two in a row, then the probe
		}
		if now += open - 1; l.Account(ws[0], now).Ejected == "" {
			t.Errorf("time %d: in again before %d s", i, open/1e9)
		}
		if now++; l.Account(ws[0], now).Ejected != "" {
			t.Errorf("time %d: still out after %d s: %s", i, open/1e9, l.Account(ws[0], now).Ejected)
		}
	}
	if end(Served); end(Served) != Picked {
		t.Error("a worker that serves is in")
	}
}

// TestLearned learns what a token is in bytes and how long answers are.
func TestLearned(t *testing.T) {
	var l Learned
	prompt, _ := l.Estimate(Size{Text: 4000}, 0)
	if prompt < 500 || prompt > 4000 {
		t.Errorf("before anything is learned 4000 bytes are %d tokens", prompt)
	}
	for range 200 {
		l.Learn(Size{Text: 6000}, 1000, 300)
	}
	prompt, output := l.Estimate(Size{Text: 12_000}, 0)
	if math.Abs(float64(prompt)-2000) > 40 {
		t.Errorf("12000 bytes at 6 bytes a token are %d tokens", prompt)
	}
	if output < 250 || output > 400 {
		t.Errorf("after answers of 300 tokens %d are expected", output)
	}
	if _, output := l.Estimate(Size{Text: 12_000}, 20); output != 20 {
		t.Errorf("max_tokens 20, and %d are expected", output)
	}
	l.Learn(Size{}, 0, 0)
	l.Learn(Size{Text: 1 << 60}, 1, -5)
	if prompt, output := l.Estimate(Size{Text: 12_000}, 0); prompt <= 0 || output <= 0 {
		t.Errorf("after nonsense: %d and %d", prompt, output)
	}
}
