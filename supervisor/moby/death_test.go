package moby

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
)

// never is a time at which nothing happens.
const never = 1000 * time.Hour

// witnessed is an engine that has one container, which ended with an exit code, and
// what is told of that end, each a while after it; below zero: before it.
type witnessed struct {
	code       int
	ended      time.Time
	state      time.Duration // OOMKilled is set
	oom, hand  time.Duration // the events
	deaf       bool          // it tells no events
	inspected  int
	eventsRead int
}

func (w *witnessed) inspect() container.InspectResponse {
	s := &container.State{ExitCode: w.code, StartedAt: w.ended.Add(-time.Hour).Format(time.RFC3339Nano), FinishedAt: w.ended.Format(time.RFC3339Nano)}
	s.OOMKilled = !time.Now().Before(w.ended.Add(w.state))
	return container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{ID: "c", State: s}}
}

func (w *witnessed) ContainerInspect(context.Context, string) (container.InspectResponse, error) {
	w.inspected++
	return w.inspect(), nil
}

func (w *witnessed) Events(ctx context.Context, options events.ListOptions) (<-chan events.Message, <-chan error) {
	w.eventsRead++
	messages, errs := make(chan events.Message), make(chan error, 1)
	until, err := time.Parse(time.RFC3339Nano, options.Until)
	if err != nil || !options.Filters.ExactMatch("container", "c") || !options.Filters.ExactMatch("event", "oom") || !options.Filters.ExactMatch("event", "kill") {
		errs <- errors.New("the test engine was asked for other events")
		return messages, errs
	}
	if w.deaf {
		errs <- cerrdefs.ErrPermissionDenied
		return messages, errs
	}
	tell := func(at time.Duration, m events.Message) bool {
		if w.ended.Add(at).After(until) {
			return true
		}
		time.Sleep(time.Until(w.ended.Add(at)))
		select {
		case messages <- m:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		_ = tell(-time.Minute, events.Message{Action: events.ActionKill, Actor: events.Actor{ID: "c", Attributes: map[string]string{"signal": "15"}}}) &&
			tell(w.oom, events.Message{Action: events.ActionOOM, Actor: events.Actor{ID: "c"}}) &&
			tell(w.hand, events.Message{Action: events.ActionKill, Actor: events.Actor{ID: "c", Attributes: map[string]string{"signal": "9"}}})
		time.Sleep(time.Until(until))
		errs <- io.EOF
	}()
	return messages, errs
}

// An end for want of memory is told from one by somebody's hand, in whichever order its
// signs come and whichever of them an engine has; and no longer is waited for a sign
// than one may come.
func TestDeaths(t *testing.T) {
	const ms, before = time.Millisecond, -time.Millisecond
	type kernel struct{ seen, now int64 } // what it has killed, when the container last ran, and after its end
	none := kernel{-1, 0}                 // another machine's, or nobody saw the container run
	f := func(name string, w witnessed, k kernel, starved bool, within time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			w.ended = began
			if w.code == 0 {
				w.code = Killed
			}
			var d Deaths
			var kills func() int64
			if k.seen >= 0 {
				d.Runs("c", k.seen)
				kills = func() int64 { return k.now }
			}
			if got := d.Starved(t.Context(), &w, w.inspect(), kills); got != starved {
				t.Errorf("%s: for want of memory %t; want %t", name, got, starved)
			}
			if took := time.Since(began); took > within {
				t.Errorf("%s: it took %v; want %v at most", name, took, within)
			}
			// Once it is known nothing more is asked.
			asked, began := w.eventsRead, time.Now()
			if got := d.Starved(t.Context(), &w, w.inspect(), kills); got != starved || w.eventsRead != asked || time.Since(began) > 0 {
				t.Errorf("%s: asked again: %t after %v, with %d questions more", name, got, time.Since(began), w.eventsRead-asked)
			}
			time.Sleep(10 * lateSign) // the engine's streams end
		})
	}
	f("the state has it", witnessed{state: before, oom: before, hand: never}, none, true, 0)
	f("the event came first, and the state lacks it", witnessed{state: never, oom: before, hand: never}, none, true, 0)
	f("the event comes after the end, and the state never has it", witnessed{state: never, oom: 700 * ms, hand: never}, none, true, 700*ms)
	f("state and event come after the end", witnessed{state: 1500 * ms, oom: 1500 * ms, hand: never}, none, true, 1500*ms)
	f("the state comes after the end, without events", witnessed{state: 1500 * ms, deaf: true}, none, true, lateSign)
	f("no sign but the kernel's", witnessed{state: never, oom: never, hand: never}, kernel{4, 5}, true, lateSign)
	f("no sign but the kernel's, without events", witnessed{state: never, deaf: true}, kernel{4, 5}, true, lateSign)
	f("the kernel's and the event", witnessed{state: never, oom: 20 * ms, hand: never}, kernel{4, 5}, true, 20*ms)
	f("the kernel killed nobody", witnessed{state: never, oom: never, hand: never}, kernel{4, 4}, false, 0)
	f("a hand, by the engine", witnessed{state: never, oom: never, hand: 5 * ms}, none, false, 5*ms)
	f("a hand, and the kernel killed another", witnessed{state: never, oom: never, hand: 5 * ms}, kernel{4, 5}, false, 5*ms)
	f("a hand, past the engine", witnessed{state: never, oom: never, hand: never}, none, false, lateSign)
	f("a hand, past an engine without events", witnessed{state: never, deaf: true}, none, false, lateSign)
	f("it ended by itself", witnessed{code: 1, state: never, oom: never, hand: never}, none, false, 0)
	f("it ended by itself when its child was killed", witnessed{code: 1, state: before, oom: before, hand: never}, none, true, 0)
}

// One that ended long ago is judged by what the engine still has, at once; and one that
// runs again is judged anew.
func TestDeathLongAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witnessed{code: Killed, ended: time.Now(), state: never, oom: never, hand: never}
		time.Sleep(time.Hour)
		began := time.Now()
		var d Deaths
		if d.Starved(t.Context(), w, w.inspect(), nil) || time.Since(began) > 0 {
			t.Errorf("it was said to have been killed for want of memory, or waited for: %v", time.Since(began))
		}
		d.Runs("c", -1)
		w.ended, w.oom = time.Now(), 100*time.Millisecond
		if !d.Starved(t.Context(), w, w.inspect(), nil) {
			t.Error("its second end was taken for its first")
		}
		time.Sleep(10 * lateSign)
	})
}
