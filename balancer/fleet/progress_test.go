package fleet

import (
	"testing"
	"time"

	"roundhouse/balancer/ledger"
)

// TestPatience bounds how long engines may be silent, by their kind and by what they
// have to compute.
func TestPatience(t *testing.T) {
	d := &Fleet{HungAfter: 30 * time.Second}
	f := func(name string, own bool, v ledger.Account, suspect, hung time.Duration) {
		t.Helper()
		s, h := d.patience(&v, own, 10*time.Minute)
		if s != suspect || h != hung {
			t.Errorf("%s: suspected after %v, hung after %v; want %v and %v", name, s, h, suspect, hung)
		}
	}
	none := ledger.Account{InFlight: 2, Running: 2}
	f("tokens are to come of an engine with no prompt", false, none, 30*time.Second, 30*time.Second)
	f("of ours", true, none, 30*time.Second, 30*time.Second)
	f("of ours, whose one step may take long", true, ledger.Account{InFlight: 1, Running: 1, PromptsLeft: 1, PrefillSeconds: 40}, 160*time.Second, 160*time.Second)
	first := ledger.Account{InFlight: 1, Running: 1, PromptsLeft: 1}
	f("the first prompt of all", false, first, 10*time.Minute, 10*time.Minute)
	f("the first here, long by the others' rate", false, ledger.Account{InFlight: 1, Running: 1, PromptsLeft: 1, PrefillSeconds: 300}, 20*time.Minute, 20*time.Minute)
	known := ledger.Account{InFlight: 1, Running: 1, PromptsLeft: 1, PrefillSeconds: 2, RateLearned: true}
	f("a short one at a known rate", false, known, 30*time.Second, 10*time.Minute)
	known.PrefillSeconds = 45
	f("a long one", false, known, 3*time.Minute, 10*time.Minute)
	known.PrefillSeconds = 400
	f("a very long one", false, known, 1600*time.Second, 1600*time.Second)
	strangers := ledger.Account{InFlight: 1, Running: 3, RateLearned: true}
	f("prompts of strangers", false, strangers, 30*time.Second, 10*time.Minute)
	waiting := ledger.Account{InFlight: 3, Running: 2, Waiting: 1, RateLearned: true}
	f("one that waits", false, waiting, 30*time.Second, 10*time.Minute)
}

// TestSilence takes whatever changes for a sign of computing.
func TestSilence(t *testing.T) {
	var s silence
	second := int64(time.Second)
	v := ledger.Account{InFlight: 1, Running: 1, OldestSent: 100 * second, ProgressAt: 90 * second, Reported: 100, Progress: 5}
	f := func(name string, at int64, want time.Duration) {
		t.Helper()
		if got := s.look(&v, at*second); got != want {
			t.Errorf("%s: silent for %v, want %v", name, got, want)
		}
	}
	f("just begun", 101, 0)
	f("nothing changes", 141, 40*time.Second)
	v.Reported = 120
	f("blocks are booked for a part of a prompt", 151, 0)
	v.Generated++
	f("a token is relayed, which no report shows yet", 152, 0)
	v.Progress++
	f("a counter moves", 160, 0)
	v.Running = 2
	f("another has begun", 170, 0)
	f("nothing changes", 200, 30*time.Second)
	v.ProgressAt = 195 * second
	f("a first token has come", 201, 6*time.Second)
	v.InFlight = 0
	f("nothing is there", 300, 0)
}
