package worker_test

import (
	"context"
	"testing"
	"testing/synctest"

	"roundhouse/worker"
)

// TestPauseWaits holds that such a pause begins when what runs has ended with all
// its tokens, that requests which come meanwhile wait for the end of the pause,
// and that a resumption or the caller's leaving ends the wait.
func TestPauseWaits(t *testing.T) {
	request := func(id string) worker.Request {
		return worker.Request{ID: id, Tokens: prompt(9, 1), Params: params(12)}
	}
	f := func(name string, during func(e *worker.Engine, leave func()), paused bool) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, m := start(t, setup{})
				release := m.Hold()
				submit := func(id string) *worker.Stream {
					s, err := e.Submit(request(id))
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					return s
				}
				running := submit("running")
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				answer := make(chan bool, 1)
				go func() { answer <- e.PauseIdle(ctx) }()
				synctest.Wait()
				late, gone := submit("late"), submit("gone")
				gone.Close()
				during(e, leave)
				release()
				if a := collect(running, 1); a.err != nil || len(a.tokens[0]) != 12 || a.why[0] != worker.FinishLength {
					t.Errorf("the one that ran: %+v", a)
				}
				if got := <-answer; got != paused {
					t.Errorf("paused: %v; want %v", got, paused)
				}
				synctest.Wait()
				if n := e.Stats().Finished[worker.FinishLength]; paused && n != 1 {
					t.Errorf("%d requests were answered before the pause ended; want 1", n)
				}
				e.Resume(t.Context())
				if a := collect(late, 1); a.err != nil || len(a.tokens[0]) != 12 {
					t.Errorf("the one that came meanwhile: %+v", a)
				}
				if !e.PauseIdle(t.Context()) || !e.PauseIdle(t.Context()) { // an idle engine and a suspended engine pause at once
					t.Error("an idle engine does not pause")
				}
			})
		})
	}
	f("waits", func(*worker.Engine, func()) {}, true)
	f("resumed", func(e *worker.Engine, _ func()) { go e.Resume(context.Background()); synctest.Wait() }, false)
	f("left", func(_ *worker.Engine, leave func()) { leave(); synctest.Wait() }, false)
}
