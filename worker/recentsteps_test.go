package worker

import (
	"testing"
	"time"

	"roundhouse/worker/kv"
)

// TestPast counts the steps that a request has missed by waiting elsewhere.
func TestPast(t *testing.T) {
	var p recentSteps
	begin := time.Now()
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	f := func(step uint64, now int, waited time.Duration, want uint64) {
		t.Helper()
		if got := p.steps(step, at(now), waited); got != want {
			t.Errorf("step %d, second %d, waited %v: got %d steps; want %d", step, now, waited, got, want)
		}
	}
	f(0, 0, time.Minute, 0) // nothing was ever computed
	for step := range 200 { // two steps a second
		p.note(uint64(step+1), begin.Add(time.Duration(step)*time.Second/2))
	}
	f(200, 100, 0, 0)
	f(200, 100, -time.Hour, 0)
	f(200, 100, 10*time.Second, 19)
	f(200, 100, 90*time.Second, 179)
	f(200, 100, 1<<62, 199) // no more than there were
	f(200, 150, 10*time.Second, 0)
	for step := 200; step < 20_000; step++ { // fast ones share their marks
		p.note(uint64(step+1), at(100).Add(time.Duration(step-200)*100*time.Millisecond))
	}
	if got := p.steps(20_000, at(2080), time.Minute); got < 590 || got > 600 {
		t.Errorf("a minute of 10 steps a second: got %d", got)
	}
	if got := p.steps(20_000, at(2080), time.Hour); got < 5990 || got > 6000 {
		t.Errorf("an hour, of which ten minutes are believed: got %d", got)
	}
}

// TestWaitedElsewhere sends a long prompt that has waited at its door behind
// short ones: it goes first where one that came to the worker at once would,
// and one that claims to have waited longer than the worker computes gains
// nothing by it.
func TestWaitedElsewhere(t *testing.T) {
	f := func(name string, waited uint64, wantFirst bool) {
		t.Helper()
		s := NewScheduler(kv.New(kv.Options{Groups: []kv.Group{{Blocks: 2000, BlockTokens: 4}}}), Limits{Tokens: 64, Seqs: 16, Rows: 16})
		s.step = 100
		short := &Sequence{Prompt: 300, Tokens: tokensFrom(300, 1000)}
		s.Add(short)
		long := &Sequence{Prompt: 500, Tokens: tokensFrom(500, 0), waited: waited}
		s.Add(long)
		if first := s.Schedule().Entries[0].Seq == long; first != wantFirst {
			t.Errorf("%s: the long one first: %v", name, first)
		}
		if s.weight(long) < 500-int(s.step)*4 {
			t.Errorf("%s: it weighs %d, less than if it had been here from the first step on", name, s.weight(long))
		}
	}
	f("it came now", 0, false)
	f("it waited 40 steps", 40, false)
	f("it waited 60 steps", 60, true)
	f("it says that it waited for ever", 1<<63, true)
}
