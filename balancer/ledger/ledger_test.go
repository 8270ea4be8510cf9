package ledger

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func fleet(n int, capacity int64) (*Ledger, *Group, []*Worker) {
	l, g := New(), &Group{}
	ws := make([]*Worker, n)
	for i := range ws {
		ws[i] = &Worker{ID: fmt.Sprintf("p/%d", i)}
	}
	l.SetGroup(g, LeastKV, ws)
	for _, w := range ws {
		l.SetWorker(w, 1, true, capacity, 1)
	}
	return l, g, ws
}

// TestSpread sends 64 requests at once to equal workers.
func TestSpread(t *testing.T) {
	for _, policy := range []Policy{LeastKV, Fastest, LeastInflight, RoundRobin} {
		for n := 1; n <= 9; n++ {
			l, g, ws := fleet(n, 1<<20)
			l.SetGroup(g, policy, ws)
			for range 64 {
				if v, _ := l.Pick(g, &Ask{Prompt: 500, Expect: 100, Now: 2}, &Charge{}); v != Picked {
					t.Fatal("not picked")
				}
			}
			for _, w := range ws {
				if got := l.Account(w, 3).InFlight; math.Abs(float64(got)-64/float64(n)) > 1 {
					t.Errorf("%v over %d workers: one has %d", policy, n, got)
				}
			}
		}
	}
}

// TestAccounts runs random interleavings of all that can happen to charges,
// and compares the accounts with the sum over live requests after each step.
func TestAccounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, g, ws := fleet(rapid.IntRange(1, 4).Draw(t, "workers"), 50_000)
		l.Configure(Breaker{Failures: 3, Open: 100}, 50)
		var live []*Charge
		now := int64(10)
		some := func() *Charge {
			if len(live) == 0 {
				t.Skip("nothing is live")
			}
			return live[rapid.IntRange(0, len(live)-1).Draw(t, "which")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"pick": func(t *rapid.T) {
				c := &Charge{}
				a := &Ask{Prompt: rapid.Int64Range(1, 20_000).Draw(t, "prompt"), Expect: rapid.Int64Range(0, 2000).Draw(t, "expect"), Now: now}
				if rapid.Bool().Draw(t, "hits") {
					a.Hits = make([]int32, len(ws))
					a.Hits[0] = rapid.Int32Range(0, 30_000).Draw(t, "hit")
				}
				family := rapid.Uint64Range(1, 3).Draw(t, "family")
				for i := range rapid.Uint64Range(0, 60).Draw(t, "chunks") {
					a.Chunks = append(a.Chunks, family<<32+i<<4)
				}
				a.ChunkTokens = rapid.Float64Range(0, 500).Draw(t, "tokens a chunk")
				if v, _ := l.Pick(g, a, c); v == Picked {
					live = append(live, c)
				}
			},
			"first": func(*rapid.T) { l.First(some(), now) },
			"grow":  func(t *rapid.T) { l.Grow(some(), rapid.Int64Range(1, 5000).Draw(t, "n")) },
			"settle": func(t *rapid.T) {
				l.Settle(some(), rapid.Int64Range(0, 20_000).Draw(t, "prompt"), rapid.Int64Range(-1, 20_000).Draw(t, "cached"))
			},
			"elsewhere": func(t *rapid.T) {
				w := ws[rapid.IntRange(0, len(ws)-1).Draw(t, "worker")]
				var e Elsewhere
				e.Add(Elsewhere{KV: rapid.Int64().Draw(t, "kv"), Prefill: rapid.Int64().Draw(t, "prefill"), InFlight: rapid.Int().Draw(t, "in flight")})
				l.SetElsewhere(w, l.Account(w, now).Generation, e)
			},
			"release": func(t *rapid.T) {
				c := some()
				how := Outcome(rapid.IntRange(0, 3).Draw(t, "how"))
				if !l.Release(c, how, now) || l.Release(c, how, now) {
					t.Fatal("a charge is released once")
				}
				for i := range live {
					if live[i] == c {
						live = append(live[:i], live[i+1:]...)
						break
					}
				}
			},
			"restart": func(t *rapid.T) {
				w := ws[rapid.IntRange(0, len(ws)-1).Draw(t, "worker")]
				l.SetWorker(w, l.Account(w, now).Generation+1, true, 50_000, now)
			},
			"report": func(t *rapid.T) {
				w := ws[rapid.IntRange(0, len(ws)-1).Draw(t, "worker")]
				l.Report(w, l.Account(w, now).Generation, Report{
					At: now, Used: rapid.Int64Range(-5, 200_000).Draw(t, "used"), Own: rapid.Int64Range(-1, 60_000).Draw(t, "own"),
					Running: rapid.IntRange(-1, 50).Draw(t, "running"), Waiting: rapid.IntRange(-1, 50).Draw(t, "waiting"), Progress: -1,
				})
			},
			"": func(t *rapid.T) {
				now += 7
				for _, w := range ws {
					kv, prefill, work, n := int64(0), int64(0), int64(0), 0
					segments := map[uint64]int64{}
					for _, c := range live {
						if c.worker != w {
							continue
						}
						n++
						if c.booked() {
							kv += c.kv
							prefill += c.prefill
							work += c.work
							if c.kv+c.covered < c.prompt+c.generated.Load() {
								t.Fatalf("a request of %d + %d tokens has booked %d and %d in segments", c.prompt, c.generated.Load(), c.kv, c.covered)
							}
							for from := 0; from < len(c.chunks); {
								from = min(nextMark(from), len(c.chunks))
								segments[c.chunks[from-1]] = w.shared[c.chunks[from-1]].tokens
							}
						}
					}
					for _, tokens := range segments {
						kv += tokens
					}
					if len(segments) != len(w.shared) {
						t.Fatalf("%d segments are held, and %d are live", len(w.shared), len(segments))
					}
					if got := w.backlog[classes-1].work; got != work || w.work != work {
						t.Fatalf("%s: %d is to be computed; its requests say %d", w.ID, got, work)
					}
					v := l.Account(w, now)
					if v.KV != kv || v.Prefill != prefill || v.InFlight != n || v.Foreign < 0 {
						t.Fatalf("%s: the account says kv %d prefill %d in flight %d foreign %d; its requests %d %d %d", w.ID, v.KV, v.Prefill, v.InFlight, v.Foreign, kv, prefill, n)
					}
				}
			},
		})
	})
}

// TestForeign separates what others have sent from what this door has.
func TestForeign(t *testing.T) {
	l, g, ws := fleet(1, 100_000)
	var c Charge
	l.Pick(g, &Ask{Prompt: 1000, Expect: 500, Now: 100}, &c)
	f := func(name string, r Report, now, want int64) {
		t.Helper()
		l.Report(ws[0], 1, r)
		if got := l.Account(ws[0], now).Foreign; got != want {
			t.Errorf("%s: foreign is %d; want %d", name, got, want)
		}
	}
	f("the worker tells them apart", Report{At: 200, Used: 5000, Own: 900, Progress: -1}, 200, 4100)
	f("a scrape that saw the request", Report{At: 200, Used: 5000, Own: -1, Progress: -1}, 200, 4000)
	f("a scrape that began before it", Report{At: 50, Used: 5000, Own: -1, Progress: -1}, 200, 5000)
	f("less than expected is no credit", Report{At: 200, Used: 10, Own: -1, Progress: -1}, 200, 0)
	f("absurd", Report{At: 200, Used: 1 << 50, Own: -1, Progress: -1}, 200, 0)
	f("not said", Report{At: 200, Used: -1, Own: -1, Progress: -1}, 200, 0)
	f("half faded", Report{At: 0, Used: 5000, Own: 0, Progress: -1}, 11e9, 2500)
	f("faded", Report{At: 0, Used: 5000, Own: 0, Progress: -1}, 30e9, 0)
}

// TestBreaker takes a failing worker out and lets one probe in.
func TestBreaker(t *testing.T) {
	l, g, ws := fleet(1, 100_000)
	l.Configure(Breaker{Failures: 2, Open: 1000}, 0)
	pick := func(now int64) (*Charge, Verdict) {
		c := &Charge{}
		v, _ := l.Pick(g, &Ask{Prompt: 1, Expect: 1, Now: now}, c)
		return c, v
	}
	for range 2 {
		c, v := pick(10)
		if v != Picked {
			t.Fatal("a worker that is in must be picked")
		}
		l.Release(c, Failed, 10)
	}
	if _, v := pick(500); v != None {
		t.Fatal("a worker that is out was picked")
	}
	probe, v := pick(1500)
	if v != Picked {
		t.Fatal("no probe was let in")
	}
	if _, v := pick(1500); v != None {
		t.Fatal("a second probe was let in")
	}
	l.Release(probe, Served, 1600)
	if _, v := pick(1600); v != Picked {
		t.Fatal("a worker that answered its probe is in again")
	}
	if got := l.Account(ws[0], 1600).Served; got != 1 {
		t.Errorf("served %d; want 1", got)
	}
}

// TestRoom sends workers of ours no more than they have room for, where half of each
// answer counts as grown.
func TestRoom(t *testing.T) {
	l, g, ws := fleet(2, 1000)
	for _, w := range ws {
		l.Report(w, 1, Report{At: 4, Used: -1, HasPrefill: true, Progress: -1})
	}
	pick := func(prompt int64) Verdict {
		v, _ := l.Pick(g, &Ask{Prompt: prompt, Expect: 100, Now: 5}, &Charge{})
		return v
	}
	for range ws {
		if pick(800) != Picked {
			t.Fatal("there is room on both")
		}
	}
	if pick(151) != Full {
		t.Fatal("there is no room on either")
	}
	if pick(50) != Picked {
		t.Fatal("two answers of a hundred tokens hold a hundred together, on average")
	}
}

// BenchmarkPick is one choice among a thousand workers, and its release.
func BenchmarkPick(b *testing.B) {
	l, g, _ := fleet(1000, 1<<20)
	for i, w := range g.workers {
		l.Report(w, 1, Report{At: 4, Used: -1, HasPrefill: true, Progress: -1})
		for k := range 3 {
			l.Pick(g, &Ask{Prompt: int64(100 + i%7*900 + 300*k), Expect: 100, Prefer: w, Now: 5}, &Charge{})
		}
	}
	a := &Ask{Prompt: 1000, Expect: 100, Now: 5, Hits: make([]int32, 1000)}
	var c Charge
	b.ReportAllocs()
	for b.Loop() {
		l.Pick(g, a, &c)
		l.Release(&c, Served, 6)
	}
}
