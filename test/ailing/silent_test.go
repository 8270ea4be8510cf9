package ailing

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"roundhouse/balancer/sim"
	"roundhouse/measure/diagnose"
)

// healthy is traffic that a service bears well.
type healthy struct {
	name    string
	workers []sim.Speed
	jobs    []sim.Job
}

// wholesome are twenty workloads of six minutes in which nothing is wrong: from nearly
// nobody to three quarters of what the engines compute, steady and in bursts, with long
// prompts and long answers, on our own engine's pace and on an accelerator's.
func wholesome() (all []healthy) {
	for name, speed := range map[string]sim.Speed{"ours": sim.Fitted, "accelerator": sim.Accelerator} {
		for _, n := range []int{1, 4} {
			add := func(what string, share float64, burst int, draw func(*rand.Rand) (prompt, output int)) {
				rng := rand.New(rand.NewPCG(uint64(len(all)), 21))
				h := healthy{name: fmt.Sprintf("%s, %d: %s", name, n, what)}
				for range n {
					h.workers = append(h.workers, speed)
				}
				work := 0.0
				for range 200 {
					var j sim.Job
					j.Prompt, j.Output = draw(rng)
					work += speed.Work(&j) / 200
				}
				gap := work / share / float64(n)
				for at := 0.0; at < length; at += rng.ExpFloat64() * gap * float64(burst) {
					for range burst {
						p, o := draw(rng)
						h.jobs = append(h.jobs, sim.Job{At: at, Prompt: p, Output: o})
					}
				}
				all = append(all, h)
			}
			chat := func(rng *rand.Rand) (int, int) { return 50 + rng.IntN(400), 20 + rng.IntN(200) }
			add("a few chats", 0.1, 1, chat)
			add("many chats", 0.6, 1, chat)
			add("bursts of chats", 0.4, 6, chat)
			add("long answers", 0.5, 1, func(rng *rand.Rand) (int, int) { return 20 + rng.IntN(50), 300 + rng.IntN(500) })
			long, share := 800, 0.5
			if name == "ours" { // on two cores of a processor, such prompts make every stream stutter
				long, share = 200, 0.3
			}
			add("long prompts", share, 1, func(rng *rand.Rand) (int, int) { return long + rng.IntN(long), 5 + rng.IntN(20) })
		}
	}
	return all
}

// Of a healthy service nothing is said, whatever its load.
func TestSilent(t *testing.T) {
	all := wholesome()
	if len(all) < 20 {
		t.Fatalf("there are %d workloads", len(all))
	}
	began := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for _, x := range all {
		t.Run(x.name, func(t *testing.T) {
			r := &diagnose.Recording{}
			s := &sim.Scenario{Workers: x.workers, Stale: 0.25, Jobs: x.jobs, Watch: sim.Watch{Every: 5, Say: func(at float64, page string) {
				if at >= 60 { // the door has learned by then
					r.Add(began.Add(time.Duration(at*float64(time.Second))), page)
				}
			}}}
			sim.Run(s, sim.Policies()[0](), 1)
			facts := &diagnose.Facts{Pools: []diagnose.Pool{{Name: "w", Policy: "least_kv", Workers: len(x.workers), Args: []string{"--max-num-batched-tokens", fmt.Sprint(x.workers[0].Budget)}}}}
			if r.Span() < 4*time.Minute {
				t.Fatalf("only %v were recorded", r.Span())
			}
			report := diagnose.Judge(r, nil, facts, &diagnose.Defaults)
			t.Logf("healthy %s: %d false", x.name, len(report.Findings))
			if len(report.Findings) > 0 {
				t.Errorf("found: %s", told(&report))
			}
		})
	}
}

// Of live engines that are well nothing is said either, once enough has been answered.
// How fast a crowded machine computes nobody can predict, and how old a report becomes
// there neither, so that predictions are left out and a report may be as old as ever.
func TestSilentLive(t *testing.T) {
	for name, clients := range map[string]int{"nobody": 0, "eight clients": 8} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			urls, _ := engines(t, usual, usual)
			s := newStand(t, 0, urls...)
			s.loop(clients, s.door, same(50, 50), 0)
			r := s.recordUntil(func(r *diagnose.Recording) bool {
				return len(r.Times) >= 15 && (clients == 0 || r.Grew("roundhouse_requests_total", diagnose.Labels{"pool": "p"}) >= 2*diagnose.Defaults.Finished)
			})
			limits := hasty()
			limits.ReportAge = diagnose.Defaults.ReportAge
			report := diagnose.Judge(r, nil, &diagnose.Facts{}, limits)
			for _, f := range report.Findings {
				if f.Rule != "wrong-prediction" {
					t.Errorf("found: %s", told(&report))
				}
			}
		})
	}
}
