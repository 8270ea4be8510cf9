package balancer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// trialRig is a door with a route "chat" to "sim", which has the adapter "v2" on trial.
func trialRig(t *testing.T, workers []*sim.Worker, path string, change func(*configs.RouteCanary)) *rig {
	t.Helper()
	c := &configs.RouteCanary{Model: "v2", Steps: []float64{0.25, 0.5}, MinRequests: 20, Promote: true}
	if change != nil {
		change(c)
	}
	r := newRig(t, workers, func(s *control.WorkerSet) {
		s.Pools[0].Adapters = []string{"v2"}
		s.Routes = []configs.Route{{Name: "chat", Sticky: "session", Targets: []configs.Target{{Model: "sim", Weight: 1}}, Canary: c}}
	})
	for _, w := range workers {
		load(t, w, "v2", path)
	}
	r.until("the adapters are listed", func() bool {
		for _, w := range r.door.State().Workers {
			if len(w.Models) != 2 {
				return false
			}
		}
		return true
	})
	return r
}

// say has a conversation take a turn, and returns the model that answered, or the status.
func (r *rig) say(session string) string {
	r.t.Helper()
	resp, text := r.post("/v1/chat/completions", `{"model":"chat","messages":[{"role":"user","content":"hi"}]}`, "x-session-id", session)
	var a struct{ Model string }
	if resp.StatusCode != http.StatusOK || json.Unmarshal([]byte(text), &a) != nil {
		return resp.Status
	}
	return a.Model
}

// trial is where the route's trial stands.
func (r *rig) trial() control.CanaryShown {
	r.t.Helper()
	all := r.door.State().Canaries
	if len(all) != 1 {
		r.t.Fatalf("%d trials are shown", len(all))
	}
	return all[0]
}

// privately asks by the door's private socket.
func privately(r *rig, method, path string) *http.Response {
	w := httptest.NewRecorder()
	r.door.Private().ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Result()
}

// TestTrialRamp takes an adapter from a quarter of the conversations to all of them: none
// that is under way changes its model, and those who look see where it stands.
func TestTrialRamp(t *testing.T) {
	r := trialRig(t, []*sim.Worker{sim.New(sim.Options{Words: 3, Runtime: true}), sim.New(sim.Options{Words: 3, Runtime: true})}, "/adapters/v2", nil)
	where := map[string]string{}
	turn := func(session string) {
		t.Helper()
		got := r.say(session)
		if was, known := where[session]; known && was != got {
			t.Fatalf("%s was at %s, and is at %s", session, was, got)
		}
		where[session] = got
	}
	for i := 0; r.trial().State == control.CanaryRunning; i++ {
		if i == 5000 {
			t.Fatalf("it stands at %+v", r.trial())
		}
		turn(fmt.Sprint("session ", i/2))
		turn("the first")
	}
	for session := range where {
		turn(session)
	}
	turn("one that is new")
	count := map[string]int{}
	for _, model := range where {
		count[model]++
	}
	if where["one that is new"] != "v2" || count["sim"] == 0 || count["v2"] < 10 || len(count) != 2 {
		t.Errorf("the conversations are at %v; a new one at %s", count, where["one that is new"])
	}
	if page := r.metrics(); !strings.Contains(page, `roundhouse_canary_share{model="v2",route="chat"} 1`) ||
		!strings.Contains(page, `roundhouse_canary_state{model="v2",route="chat",state="promoted"} 1`) {
		t.Errorf("the metrics say:\n%s", page)
	}
}

// TestTrialRollsBack ends a broken adapter's trial by itself, after few requests, and takes
// its conversations back.
func TestTrialRollsBack(t *testing.T) {
	r := trialRig(t, []*sim.Worker{sim.New(sim.Options{Words: 3, Runtime: true})}, "/adapters/broken", func(c *configs.RouteCanary) { c.MinRequests = 1000 })
	failed := 0
	for i := 0; r.trial().State == control.CanaryRunning; i++ {
		if i == 500 {
			t.Fatalf("it stands at %+v", r.trial())
		}
		if got := r.say(fmt.Sprint(i)); got != "sim" {
			failed++
		}
	}
	if s := r.trial(); s.State != control.CanaryRolledBack || s.Share != 0 || s.Reason == nil || !strings.Contains(*s.Reason, "of its requests failed") || failed > 12 {
		t.Errorf("it stands at %+v after %d failures", s, failed)
	}
	for i := range 50 {
		if got := r.say(fmt.Sprint(i)); got != "sim" {
			t.Fatalf("a conversation is at %s after the roll-back", got)
		}
	}
}

// TestTrialCommand promotes and rolls back by the private socket's words, and keeps a stream
// that is resumed at another worker with the adapter that it began with, though the adapter
// is rolled back meanwhile.
func TestTrialCommand(t *testing.T) {
	die := &atomic.Int64{}
	workers := []*sim.Worker{sim.New(sim.Options{Words: 12, Runtime: true, Own: true}), sim.New(sim.Options{Words: 12, Runtime: true, Own: true})}
	for _, w := range workers {
		w.DieOnce = die
	}
	r := trialRig(t, workers, "/adapters/v2", func(c *configs.RouteCanary) { c.Promote = false })
	command := func(verb string, want int) {
		t.Helper()
		w := privately(r, http.MethodPost, "/canaries/chat/"+verb+"?by=ann")
		if w.StatusCode != want {
			t.Errorf("%s: %s", verb, w.Status)
		}
	}
	command("promote", http.StatusOK)
	if got := r.say("x"); got != "v2" || *r.trial().Reason != `promoted by operator "ann"` {
		t.Errorf("promoted, a conversation is at %s: %+v", got, r.trial())
	}
	command("push", http.StatusNotFound)
	if w := privately(r, http.MethodPost, "/canaries/other/promote"); w.StatusCode != http.StatusNotFound {
		t.Errorf("a route without a trial: %s", w.Status)
	}
	die.Store(4)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/completions", strings.NewReader(`{"model":"chat","prompt":"p","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	command("rollback", http.StatusOK)
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		if strings.Count(string(text), fmt.Sprintf(`"text":"v2%d "`, i)) != 1 {
			t.Fatalf("word %d is not there once:\n%s", i, text)
		}
	}
	if got := r.say("x"); got != "sim" {
		t.Errorf("rolled back, a conversation is at %s", got)
	}
	command("restart", http.StatusOK)
	if s := r.trial(); s.State != control.CanaryRunning || s.Step != 1 {
		t.Errorf("begun again it stands at %+v", s)
	}
}
