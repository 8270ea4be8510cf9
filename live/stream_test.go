package live_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/live"
)

// TestStream: a tab is told who it is and how things stand first, then what changes: a
// drain with its event, figures of what is served, requests in flight with their speed.
func TestStream(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true, Words: 200, Pace: 10_000_000}), sim.New(sim.Options{Own: true, Words: 5})
	h := newHouse(t, a, b)
	s := h.tab("?requests=all&worker=chat/w1")
	hello := read[live.Hello](t, s.next().data)
	if hello.Rights != control.Operator || !hello.Supervisor || hello.Version != "0.0" || hello.Assets == "" {
		t.Errorf("hello is %+v", hello)
	}
	state := read[live.State](t, s.next().data)
	if len(state.Workers) != 2 || state.Workers[0].ID != "chat/w1" || len(state.Pools) != 1 || len(state.Figures) != 2 || state.Figures[0].Pool != nil || len(state.Doors) != 1 {
		t.Errorf("the state is %+v", state)
	}
	if code, text := h.ask("POST", "/api/workers/chat/w2/drain", "", "X-Roundhouse-Operator", "me"); code != http.StatusOK {
		t.Fatal(text)
	}
	e := read[live.Event](t, s.wait("event", func(m message) bool { return strings.Contains(string(m.data), `"drain"`) }).data)
	if e.Worker != "chat/w2" || !strings.Contains(e.Who, `"me"`) {
		t.Errorf("the event is %+v", e)
	}
	s.wait("change", func(m message) bool {
		c := read[live.Change](t, m.data)
		for _, w := range c.Workers {
			if string(w["id"]) == `"chat/w2"` && (string(w["state"]) == `"drained"` || string(w["state"]) == `"draining"`) {
				if w["place"] != nil {
					t.Errorf("what has not changed is sent: %s", m.data)
				}
				return true
			}
		}
		return false
	})
	done := make(chan bool)
	go func() { defer close(done); h.chat("long") }()
	r := read[live.LiveRequests](t, s.wait("requests", func(m message) bool {
		r := read[live.LiveRequests](t, m.data)
		return r.Total == 1 && r.Requests[0].TokensPerSecond != nil && *r.Requests[0].TokensPerSecond > 0
	}).data)
	if f := r.Requests[0]; f.ID != "long" || f.State != "streaming" || f.Worker != "chat/w1" || f.Door != "door-1" {
		t.Errorf("in flight is %+v", f)
	}
	sample := read[live.Sample](t, s.wait("sample", func(m message) bool {
		return strings.Contains(string(m.data), `"worker":"chat/w1"`)
	}).data)
	if strings.Contains(fmt.Sprint(sample), "chat/w2") {
		t.Errorf("a worker that nobody asked for is in the sample: %+v", sample)
	}
	<-done
}

// TestStreamRights: a reader sees all and is told that he may only look.
func TestStreamRights(t *testing.T) {
	h := newHouse(t, sim.New(sim.Options{Own: true}))
	s := h.tab("", "Authorization", "Bearer "+readToken)
	if hello := read[live.Hello](t, s.next().data); hello.Rights != control.Read {
		t.Errorf("a reader has the rights %q", hello.Rights)
	}
}

// TestEventsResume: a tab that comes back gets what it has missed, and sees what is not
// kept as a gap.
func TestEventsResume(t *testing.T) {
	h := newHouse(t, sim.New(sim.Options{Own: true}))
	for range 3 {
		h.ask("POST", "/api/workers/chat/w1/drain", "")
		h.ask("POST", "/api/workers/chat/w1/undrain", "")
	}
	first := h.tab("")
	var ids []string
	for len(ids) < 6 {
		ids = append(ids, first.wait("event", nil).id)
	}
	again := h.tab("", "Last-Event-ID", ids[2])
	for _, want := range ids[3:] {
		if got := again.wait("event", nil).id; got != want {
			t.Errorf("after %s comes %s; want %s", ids[2], got, want)
		}
	}
}

// TestWorkerDies: within moments the verdict is that nobody is served, and back.
func TestWorkerDies(t *testing.T) {
	w := sim.New(sim.Options{Own: true})
	h := newHouse(t, w)
	s := h.tab("")
	verdict := func(level string) {
		t.Helper()
		s.wait("change", func(m message) bool {
			c := read[live.Change](t, m.data)
			return c.Verdict != nil && string(c.Verdict.Severity) == level
		})
	}
	h.ask("POST", "/api/workers/chat/w1/drain", "")
	verdict("down")
	h.ask("POST", "/api/workers/chat/w1/undrain", "")
	verdict("well")
}

// TestTryThroughSupervisor: a request to one worker goes by the admin API, a long body
// with it; a reader may not send any.
func TestTryThroughSupervisor(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true, Words: 3}), sim.New(sim.Options{Own: true, Words: 3})
	h := newHouse(t, a, b)
	long := fmt.Sprintf(`{"model":"sim","max_tokens":3,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("x", 3<<20))
	for i, body := range []string{`{"model":"sim","stream":true,"messages":[{"role":"user","content":"x"}]}`, long} {
		res := h.open(t.Context(), "POST", "/api/try/v1/chat/completions", body, "X-Roundhouse-Worker", "chat/w2", "X-Request-Id", fmt.Sprint("t", i))
		res.Body.Close()
		if who := res.Header.Get("X-Roundhouse-Worker"); i == 0 && (res.StatusCode != 200 || who != "chat/w2") {
			t.Errorf("%d by %q", res.StatusCode, who)
		}
		if res.StatusCode == http.StatusRequestEntityTooLarge {
			t.Error("a body that the door takes is too long here")
		}
	}
	if status, text := h.ask("POST", "/api/try/v1/chat/completions", `{}`, "Authorization", "Bearer "+readToken); status != http.StatusForbidden {
		t.Errorf("a reader: %d %s", status, text)
	}
	h.until("it is among what has ended", func() bool {
		_, text := h.ask("GET", "/api/requests?ended=1&worker=chat/w2", "")
		return strings.Contains(text, `"id":"t0"`)
	})
}
