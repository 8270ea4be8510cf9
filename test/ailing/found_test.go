package ailing

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/sim"
	"roundhouse/measure/diagnose"
)

// illness is one way to make a service ill.
type illness struct {
	rule    string
	also    []string // what may be found beside it: its effects
	limit   int      // of the key's requests at once
	speeds  []sim.Speed
	args    []string // of the engine, as the configuration has them
	cause   string   // part of the cause that must be named
	change  string   // part of the proposed setting
	length  time.Duration
	before  func([]*sim.Worker) // done before the door meets them
	provoke func(*stand, []*sim.Worker)
}

func with(change func(*sim.Speed)) sim.Speed {
	s := usual
	change(&s)
	return s
}

// illnesses are all that can be made of engines which compute as vLLM does.
func illnesses() []illness {
	small := with(func(s *sim.Speed) { s.Capacity = 2048 })
	four := with(func(s *sim.Speed) { s.Seats = 4 })
	prompty := with(func(s *sim.Speed) { s.Budget, s.PerPrefill, s.Base = 512, 150e-6, 0.005 })
	slow := with(func(s *sim.Speed) { s.Base, s.PerDecode = 0.01, 0.0002 })
	busy := with(func(s *sim.Speed) { s.Base, s.Seats, s.Capacity = 0.02, 4, 8192 })
	return []illness{
		{rule: "kv-thrashing", also: []string{"blind", "prefill-starvation", "over-capacity"}, speeds: []sim.Speed{small}, cause: "others than the door", length: 3 * time.Second, provoke: func(s *stand, _ []*sim.Worker) {
			s.loop(32, s.engines[0], same(40, 200), 0) // past the door
		}},
		{rule: "prefill-starvation", also: []string{"blind", "under-use"}, speeds: []sim.Speed{four}, args: []string{"--max-num-seqs", "4"}, cause: "all 4 seats", change: `"--max-num-seqs", "16"`, length: 3 * time.Second, provoke: func(s *stand, _ []*sim.Worker) {
			s.loop(32, s.engines[0], same(20, 400), 0)
		}},
		{rule: "decode-starvation", also: []string{"long-requests"}, speeds: []sim.Speed{prompty}, args: []string{"--max-num-batched-tokens=512"}, cause: "hold up", change: `"--max-num-batched-tokens", "256"`, length: 3 * time.Second, provoke: func(s *stand, _ []*sim.Worker) {
			s.loop(8, s.door, same(20, 300), 0)
			s.every(400*time.Millisecond, s.door, func(int) (string, int) { return words(2000), 2 })
		}},
		{rule: "under-use", limit: 1, speeds: []sim.Speed{usual}, cause: `the key "team" may have 1`, change: "max_concurrent = 4", provoke: func(s *stand, _ []*sim.Worker) {
			s.loop(8, s.door, same(20, 10), 0)
		}},
		{rule: "kv-leak", speeds: []sim.Speed{usual}, cause: "did not give back", provoke: func(_ *stand, w []*sim.Worker) {
			lie(w[0], func(text string) string { return replaced(text, "vllm:kv_cache_usage_perc", "0.4") })
		}, also: []string{"blind"}},
		{rule: "long-requests", also: []string{"decode-starvation"}, speeds: []sim.Speed{prompty}, args: []string{"--max-num-batched-tokens=512"}, cause: "a few long prompts", change: "--long-prefill-token-threshold", length: 4 * time.Second, provoke: func(s *stand, _ []*sim.Worker) {
			s.every(15*time.Millisecond, s.door, func(int) (string, int) { return words(20), 4 })
			s.every(600*time.Millisecond, s.door, func(int) (string, int) { return words(1800), 2 })
		}},
		{rule: "slow-worker", speeds: []sim.Speed{usual, usual, slow, usual}, cause: "this engine or its device is slow", change: "slowdown", length: 2 * time.Second, provoke: func(s *stand, _ []*sim.Worker) {
			for _, e := range s.engines {
				s.loop(2, e, same(20, 40), 0)
			}
		}},
		{rule: "over-capacity", also: []string{"prefill-starvation", "under-use"}, speeds: []sim.Speed{busy}, args: []string{"--max-num-seqs", "4"}, cause: "too slow for what comes", length: 3 * time.Second, provoke: func(s *stand, _ []*sim.Worker) {
			s.every(20*time.Millisecond, s.door, func(int) (string, int) { return words(20), 20 })
		}},
		{rule: "blind", speeds: []sim.Speed{usual, usual}, cause: "other names", length: 2 * time.Second, before: func(w []*sim.Worker) {
			lie(w[0], func(text string) string { return strings.ReplaceAll(text, "vllm:kv_cache", "vllm:cash") })
		}, provoke: func(s *stand, _ []*sim.Worker) {
			s.loop(2, s.door, same(20, 20), 0)
		}},
		{rule: "clients-leave", also: []string{"over-capacity", "prefill-starvation", "under-use"}, speeds: []sim.Speed{busy}, cause: "lose patience", provoke: func(s *stand, _ []*sim.Worker) {
			s.loop(16, s.door, same(20, 20), 150*time.Millisecond)
			s.loop(4, s.door, same(20, 2), 0)
		}},
		{rule: "worker-errors", speeds: []sim.Speed{usual, usual, usual}, cause: "this worker is at fault", length: 2 * time.Second, provoke: func(s *stand, w []*sim.Worker) {
			w[1].Status.Store(500)
			s.loop(12, s.door, same(20, 4), 0)
		}},
		{rule: "wrong-prediction", speeds: []sim.Speed{usual}, cause: "another pace", length: 3 * time.Second, also: []string{"blind"}, provoke: func(s *stand, w []*sim.Worker) {
			for range 30 {
				s.ask(s.door, words(1000), 1, 0)
			}
			lie(w[0], func(text string) string { return text })
			s.loop(16, s.engines[0], same(1500, 1), 0) // past the door, and unseen by it
			s.loop(8, s.door, same(1000, 1), 0)
		}},
	}
}

// lie lets a worker say for ever what it says now, changed.
func lie(w *sim.Worker, change func(string) string) {
	res, err := http.Get(w.URL + "/metrics")
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	var b strings.Builder
	if _, err := fmt.Fprint(&b, read(res)); err != nil {
		panic(err)
	}
	w.Lie.Store(change(b.String()))
}

// replaced is an exposition in which one metric has another value.
func replaced(text, name, value string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name) {
			line = line[:strings.LastIndexByte(line, ' ')+1] + value + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// Every illness that is provoked is found, with its cause and what mends it, and
// nothing is found that is not it or its effect.
func TestFound(t *testing.T) {
	for _, x := range illnesses() {
		t.Run(x.rule, func(t *testing.T) {
			t.Parallel()
			urls, workers := engines(t, x.speeds...)
			if x.before != nil {
				x.before(workers)
			}
			s := newStand(t, x.limit, urls...)
			x.provoke(s, workers)
			if x.length == 0 {
				x.length = 1500 * time.Millisecond
			}
			r := s.record(x.length)
			facts := &diagnose.Facts{Pools: []diagnose.Pool{{Name: "p", Policy: "least_kv", Workers: len(urls), Args: x.args}}}
			if x.limit > 0 {
				facts.Keys = []diagnose.Key{{Name: "team", Concurrent: x.limit}}
			}
			report := diagnose.Judge(r, nil, facts, hasty())
			found, beside := false, []string{}
			for _, f := range report.Findings {
				switch {
				case f.Rule == x.rule:
					found = true
					if !strings.Contains(f.Cause, x.cause) || x.change != "" && (f.Change == nil || !strings.Contains(f.Change.Proposed, x.change)) {
						t.Errorf("the cause is to have %q and the change %q: %s", x.cause, x.change, told(&report))
					}
					if f.Command == "" || f.Helped == "" || f.Says == "" || len(f.Evidence) == 0 {
						t.Errorf("incomplete: %+v", f)
					}
				case slices.Contains(x.also, f.Rule) || f.Severity == diagnose.Info:
					beside = append(beside, f.Rule)
				default:
					t.Errorf("also found %s: %s", f.Rule, f.Says)
				}
			}
			t.Logf("provoked %s: found %t, beside it %v", x.rule, found, beside)
			if !found {
				t.Errorf("not found; found: %s\nnot judged: %v", told(&report), report.Unjudged)
			}
		})
	}
}
