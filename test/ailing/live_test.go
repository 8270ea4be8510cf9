package ailing

import (
	"fmt"
	"net/http"
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

// steadies are illnesses that show in counts, or in what an engine says of itself: a busy
// machine only shows them later.
func steadies() []illness {
	busy := with(func(s *sim.Speed) { s.Base, s.Seats, s.Capacity = 0.02, 4, 8192 })
	return []illness{
		{rule: "under-use", limit: 1, speeds: []sim.Speed{usual}, cause: `the key "team" may have 1`, change: "max_concurrent = 4", provoke: func(s *stand, _ []*sim.Worker) {
			s.loop(8, s.door, same(20, 10), 0)
		}},
		{rule: "kv-leak", speeds: []sim.Speed{usual}, cause: "did not give back", provoke: func(_ *stand, w []*sim.Worker) {
			lie(w[0], func(text string) string { return replaced(text, "vllm:kv_cache_usage_perc", "0.4") })
		}, also: []string{"blind"}},
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

// judge has the rules look at a recording of a stand.
func (x *illness) judge(r *diagnose.Recording, workers int) diagnose.Report {
	facts := &diagnose.Facts{Pools: []diagnose.Pool{{Name: "p", Policy: "least_kv", Workers: workers, Args: x.args}}}
	if x.limit > 0 {
		facts.Keys = []diagnose.Key{{Name: "team", Concurrent: x.limit}}
	}
	return diagnose.Judge(r, nil, facts, hasty())
}

// What shows in counts is found before live engines, by a live door: what is recorded
// grows until the finding is there, or the test's own time ends.
func TestFoundLive(t *testing.T) {
	for _, x := range steadies() {
		t.Run(x.rule, func(t *testing.T) {
			t.Parallel()
			urls, workers := engines(t, x.speeds...)
			if x.before != nil {
				x.before(workers)
			}
			s := newStand(t, x.limit, urls...)
			x.provoke(s, workers)
			var report diagnose.Report
			s.recordUntil(func(r *diagnose.Recording) bool {
				if len(r.Times) < 8 {
					return false
				}
				report = x.judge(r, len(urls))
				return compare(&report, x.rule, x.also).found
			})
			t.Logf("provoked %s, live: %s", x.rule, compare(&report, x.rule, x.also))
			whole(t, &report, x.rule, x.cause, x.change)
		})
	}
}
