package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"roundhouse/kernels"
	"roundhouse/worker"
)

// TestSleep holds that streams go on after a sleep as if there had been none,
// although every page was lost, and that requests which come meanwhile wait.
func TestSleep(t *testing.T) {
	reqs := requests(12)
	want := alone(t, setup{}, reqs)
	e, m := start(t, setup{limits: worker.Limits{Tokens: 32, Seqs: 8, Rows: 32}})
	ctx := context.Background()
	var streams []*worker.Stream
	release := m.Hold()
	for _, r := range reqs[:8] {
		s, err := e.Submit(r)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	release()
	early, err := streams[0].Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Sleep(ctx, 2); err != nil || !e.Paused(ctx) {
		t.Fatalf("sleep: %v", err)
	}
	if st := e.Stats(); st.Usage != 0 || !st.Paused || st.Asleep != 2 || st.Running != 0 {
		t.Fatalf("asleep: %+v", st)
	}
	for _, r := range reqs[8:] {
		s, err := e.Submit(r)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	e.Resume(ctx) // ends a pause, no sleep
	steps := len(m.Steps())
	if !e.Paused(ctx) || len(m.Steps()) != steps {
		t.Fatal("it computes in its sleep")
	}
	if err := e.WakeUp(ctx); err != nil || e.Paused(ctx) {
		t.Fatalf("waking: %v", err)
	}
	for i, s := range streams {
		var got answer
		if i > 0 || !slices.ContainsFunc(early, func(ev worker.Event) bool { return ev.Finish != "" }) { // request 0 has one choice
			got = collect(s, reqs[i].Params.N)
		} else {
			got.tokens = make([][]int32, 1)
		}
		if i == 0 {
			var first []int32
			for _, ev := range early {
				if ev.Token >= 0 {
					first = append(first, ev.Token)
				}
			}
			got.tokens[0] = append(first, got.tokens[0]...)
		}
		for c := range got.tokens {
			if got.err != nil || !slices.Equal(got.tokens[c], want[i].tokens[c]) {
				t.Errorf("request %d, choice %d: got %v, %v; want %v", i, c, got.tokens[c], got.err, want[i].tokens[c])
			}
		}
	}
}

// stubborn is a memory that cannot be had again.
type stubborn struct{}

func (stubborn) Release() error                    { return nil }
func (stubborn) Load() (kernels.Executable, error) { return nil, fmt.Errorf("the file is gone") }

// TestSleepsOn holds that an engine whose memory cannot be had sleeps on and
// says why, and that one without memory of its own does not sleep.
func TestSleepsOn(t *testing.T) {
	ctx := context.Background()
	e, _ := start(t, setup{memory: stubborn{}})
	if err := e.Sleep(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := e.WakeUp(ctx); err == nil || err.Error() != "the file is gone" || !e.Paused(ctx) {
		t.Fatalf("got %v", err)
	}
	e, _ = start(t, setup{sleepless: true})
	if err := e.Sleep(ctx, 1); !errors.Is(err, worker.ErrCannotSleep) || e.Paused(ctx) {
		t.Fatalf("got %v", err)
	}
}
