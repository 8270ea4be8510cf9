package supervisor

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/supervisor/journal"
)

// TestCanaryEvents has an event for each move of a trial, by the door that is furthest on,
// and none for what was so when the supervisor began.
func TestCanaryEvents(t *testing.T) {
	one, other := &door{id: "one", state: &control.State{}}, &door{id: "other", state: &control.State{}}
	s := &Supervisor{gate: gate{doors: map[string]*door{"one": one, "other": other}}}
	s.events = events{log: slog.New(slog.NewTextHandler(io.Discard, nil)), watchers: map[chan journal.Event]bool{}}
	at := func(serial uint64, state control.CanaryPhase, share float64, why string) []control.CanaryShown {
		return []control.CanaryShown{{Route: "chat", Model: "sql-2", State: state, Share: share, Serial: serial, Reason: &why}}
	}
	told := func(want ...string) {
		t.Helper()
		s.gate.noteCanaries(&s.events)
		s.gate.noteCanaries(&s.events) // which tells of nothing twice
		var got []string
		for _, e := range s.events.recent {
			got = append(got, e.Kind+" "+e.Text)
		}
		s.events.recent = nil
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("the events are %q; want %q", got, want)
		}
	}
	told()
	one.state.Canaries = at(3, control.CanaryRunning, 0.05, "")
	told()
	other.state.Canaries = at(4, control.CanaryRunning, 0.25, "no worse than the others after 200 requests")
	told(`canary route "chat": 25 % of the requests go to sql-2: no worse than the others after 200 requests`)
	one.state.Canaries = at(5, control.CanaryRolledBack, 0, "9.0 % of its requests failed, 0.1 % of the others'")
	told(`rolled_back route "chat": no request goes to sql-2 any more: 9.0 % of its requests failed, 0.1 % of the others'`)
	if shown := s.gate.trials(); len(shown) != 1 || shown[0].Serial != 5 {
		t.Errorf("shown are %+v", shown)
	}
	one.state.Canaries = at(6, control.CanaryPromoted, 1, "promoted by operator")
	told(`promoted route "chat": all requests go to sql-2: promoted by operator`)
}
