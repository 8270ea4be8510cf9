//go:build ailing

package ailing

import (
	"testing"
	"time"

	"roundhouse/balancer/sim"
)

// timed are illnesses that show in times, which a crowded machine changes: TestFound has
// the like of them in simulated time.
func timed() []illness {
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
			s.think(60*time.Millisecond, same(2500, 2))
		}},
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

// What shows in times is found on live engines too, each alone.
func TestFoundTimed(t *testing.T) {
	for _, x := range timed() {
		t.Run(x.rule, func(t *testing.T) {
			urls, workers := engines(t, x.speeds...)
			s := newStand(t, x.limit, urls...)
			x.provoke(s, workers)
			report := x.judge(s.record(x.length), len(urls))
			is := compare(&report, x.rule, x.also)
			t.Logf("provoked %s, live: %s", x.rule, is)
			if len(is.wrong) > 0 {
				t.Errorf("also found %v: %s", is.wrong, told(&report))
			}
			whole(t, &report, x.rule, x.cause, x.change)
		})
	}
}
