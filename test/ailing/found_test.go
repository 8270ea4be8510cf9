package ailing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/sim"
	"roundhouse/measure/diagnose"
)

// trouble is an illness of a simulated fleet, by its settings or by its traffic.
type trouble struct {
	rule    string
	also    []string // what may be found beside it: its effects
	workers []sim.Speed
	args    []string // of the engine, as the configuration has them
	cause   string   // part of the cause that must be named
	change  string   // part of the proposed setting
	jobs    []sim.Job
}

// length is that of the simulated traffic, in seconds; what is watched begins later.
const length = 360.0

// coming are requests at a rate, from a moment on, with lengths as drawn.
func coming(rate, from float64, draw func(*rand.Rand) (prompt, output int)) (jobs []sim.Job) {
	rng := rand.New(rand.NewPCG(7, uint64(rate*1000)))
	for at := from; at < length; at += rng.ExpFloat64() / rate {
		p, o := draw(rng)
		jobs = append(jobs, sim.Job{At: at, Prompt: p, Output: o})
	}
	return jobs
}

// of draws lengths around two means.
func of(prompt, output int) func(*rand.Rand) (int, int) {
	return func(rng *rand.Rand) (int, int) {
		return prompt/2 + rng.IntN(prompt) + 1, output/2 + rng.IntN(output) + 1
	}
}

// both are two streams of requests in the order of their coming.
func both(a, b []sim.Job) []sim.Job {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y sim.Job) int {
		if x.At < y.At {
			return -1
		}
		return 1
	})
	return all
}

// troubles are those that show in times. Requests are spread in turn, as by a door that
// knows nothing: that of ours would hold back much of it.
func troubles() []trouble {
	fast := sim.Speed{Base: 0.01, PerPrefill: 1.0 / 16000, PerDecode: 0.0001, Budget: 2048, Capacity: 60_000, InOrder: true}
	but := func(change func(*sim.Speed)) sim.Speed {
		s := fast
		change(&s)
		return s
	}
	small := but(func(s *sim.Speed) { s.Capacity = 4096 })
	four := but(func(s *sim.Speed) { s.Seats = 4 })
	prompty := but(func(s *sim.Speed) { s.PerPrefill = 1.0 / 4000 })
	slow := but(func(s *sim.Speed) { s.Base, s.PerDecode = 2*s.Base, 2*s.PerDecode })
	return []trouble{
		{rule: "kv-thrashing", also: []string{"prefill-starvation", "over-capacity", "wrong-prediction"}, workers: []sim.Speed{small}, cause: "more requests run at once", change: "--max-num-seqs", jobs: coming(2.5, 0, of(60, 500))},
		{rule: "prefill-starvation", also: []string{"over-capacity", "under-use", "wrong-prediction"}, workers: []sim.Speed{four}, args: []string{"--max-num-seqs", "4"}, cause: "all 4 seats", change: `"--max-num-seqs", "16"`, jobs: coming(1.2, 0, of(100, 400))},
		{rule: "decode-starvation", also: []string{"long-requests", "wrong-prediction"}, workers: []sim.Speed{prompty}, cause: "hold up", change: `"--max-num-batched-tokens", "1024"`, jobs: both(coming(1, 0, of(50, 300)), coming(0.38, 1, of(8000, 5)))},
		{rule: "long-requests", also: []string{"decode-starvation", "wrong-prediction"}, workers: []sim.Speed{prompty}, cause: "a few long prompts", change: "--long-prefill-token-threshold", jobs: both(coming(6, 0, of(50, 20)), coming(0.15, 1, of(8000, 5)))},
		{rule: "slow-worker", workers: []sim.Speed{fast, fast, slow, fast}, cause: "this engine or its device is slow", change: "slowdown", jobs: coming(4, 0, of(100, 100))},
		{rule: "over-capacity", also: []string{"prefill-starvation", "under-use", "wrong-prediction"}, workers: []sim.Speed{four}, args: []string{"--max-num-seqs", "4"}, cause: "too slow for what comes", jobs: coming(2, 0, of(100, 400))},
	}
}

// spread is the policy by which requests go to the workers in turn.
func spread(t *testing.T) sim.Policy {
	t.Helper()
	for _, p := range sim.Policies() {
		if q := p(); q.Name() == "round robin" {
			return q
		}
	}
	t.Fatal("there is no such policy")
	return nil
}

// Every illness that is provoked is found, with its cause and what mends it, and nothing
// is found that is not it or its effect: five minutes of simulated time, with the
// thresholds as they are.
func TestFound(t *testing.T) {
	for _, x := range troubles() {
		t.Run(x.rule, func(t *testing.T) {
			r := &diagnose.Recording{}
			began := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
			sim.Run(&sim.Scenario{Workers: x.workers, Stale: 0.25, Jobs: x.jobs, Watch: sim.Watch{Every: 5, Say: func(at float64, page string) {
				if at >= 60 {
					r.Add(began.Add(time.Duration(at*float64(time.Second))), page)
				}
			}}}, spread(t), 1)
			facts := &diagnose.Facts{Pools: []diagnose.Pool{{Name: "w", Policy: "round_robin", Workers: len(x.workers), Args: x.args}}}
			report := diagnose.Judge(r, nil, facts, &diagnose.Defaults)
			seen := compare(&report, x.rule, x.also)
			t.Logf("provoked %s, simulated: %s", x.rule, seen)
			if len(seen.wrong) > 0 {
				t.Errorf("also found %v: %s", seen.wrong, told(&report))
			}
			whole(t, &report, x.rule, x.cause, x.change)
		})
	}
}

// seen is what a report has of an illness.
type seen struct {
	found          bool
	effects, wrong []string // other rules that spoke: rightly, and not
}

func (s seen) String() string {
	word := "missed"
	if s.found {
		word = "found"
	}
	return fmt.Sprintf("%s; effects %v; false %v", word, s.effects, s.wrong)
}

// compare looks for an illness in a report.
func compare(r *diagnose.Report, rule string, also []string) (s seen) {
	for _, f := range r.Findings {
		switch {
		case f.Rule == rule:
			s.found = true
		case slices.Contains(also, f.Rule) || f.Severity == diagnose.Info:
			s.effects = append(s.effects, f.Rule)
		default:
			s.wrong = append(s.wrong, f.Rule)
		}
	}
	return s
}

// whole holds the findings of a rule to a cause and a change, and to having all parts.
func whole(t *testing.T, r *diagnose.Report, rule, cause, change string) {
	t.Helper()
	found := false
	for _, f := range r.Findings {
		if f.Rule != rule {
			continue
		}
		found = true
		if !strings.Contains(f.Cause, cause) || change != "" && (f.Change == nil || !strings.Contains(f.Change.Proposed, change)) {
			t.Errorf("the cause is to have %q and the change %q: %s", cause, change, told(r))
		}
		if f.Command == "" || f.Helped == "" || f.Says == "" || len(f.Evidence) == 0 {
			t.Errorf("incomplete: %+v", f)
		}
	}
	if !found {
		t.Errorf("not found; found: %s\nnot judged: %v", told(r), r.Unjudged)
	}
}
