package balancer_test

import (
	"io"
	"net/http"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
	"roundhouse/worker/api"
)

// TestOwnerIsTold: a worker of ours is told whose stored responses a request may see,
// by the client's key, and never what a client says of that itself.
func TestOwnerIsTold(t *testing.T) {
	own, other := sim.New(sim.Options{Own: true, Words: 2}), sim.New(sim.Options{Words: 2})
	told := func(r *rig, w *sim.Worker, path, bearer string) string {
		t.Helper()
		head := []string{api.HeaderOwner, "somebody", api.HeaderDoor, "mine"}
		if bearer != "" {
			head = append(head, "Authorization", "Bearer "+bearer)
		}
		if resp, got := r.post(path, okBody, head...); resp.StatusCode >= 500 {
			t.Fatalf("got %d %s", resp.StatusCode, got)
		}
		heads := w.Heads()
		if got := heads[len(heads)-1].Values(api.HeaderOwner); len(got) > 1 {
			t.Fatalf("told twice: %q", got)
		}
		return heads[len(heads)-1].Get(api.HeaderOwner)
	}
	keyed := newRig(t, []*sim.Worker{own}, func(s *control.WorkerSet) {
		s.Door.Keys = []configs.Key{{Name: "one", SHA256: []string{testKey, hashOf("new")}}, {Name: "zwei ß", SHA256: []string{secondKey}}}
	})
	one, two := told(keyed, own, "/v1/responses", "test"), told(keyed, own, "/v1/responses", "second")
	if one == "" || two == "" || one == two || one == "somebody" {
		t.Errorf("two keys are %q and %q", one, two)
	}
	if again := told(keyed, own, "/v1/responses", "new"); again != one {
		t.Errorf("a key that is renewed was %q and is %q", one, again)
	}
	if chat := told(keyed, own, "/v1/chat/completions", "test"); chat != "" {
		t.Errorf("a chat stores nothing, and its owner is told: %q", chat)
	}
	open := newRig(t, []*sim.Worker{sim.New(sim.Options{Own: true, Words: 2})}, nil)
	a, b, none := told(open, open.workers[0], "/v1/responses", "a"), told(open, open.workers[0], "/v1/responses", "b"), told(open, open.workers[0], "/v1/responses", "")
	if a == "" || b == "" || a == b || none != "" {
		t.Errorf("without keys, two bearers are %q and %q, and nobody is %q", a, b, none)
	}
	foreign := newRig(t, []*sim.Worker{other}, nil)
	if got := told(foreign, other, "/v1/responses", "a"); got != "" {
		t.Errorf("an engine that is not ours is told %q", got)
	}
}

// TestStoredIsItsBearers stores a response at a door without keys, and asks for it as
// the same client, as another one and as nobody.
func TestStoredIsItsBearers(t *testing.T) {
	r := stubRig(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"resp_1","object":"response"}`)
	})
	if resp, got := r.post("/v1/responses", `{"model":"sim","input":"x"}`, "Authorization", "Bearer a"); resp.StatusCode != 200 {
		t.Fatalf("got %d %s", resp.StatusCode, got)
	}
	for _, c := range []struct {
		head   []string
		status int
	}{
		{[]string{"Authorization", "bearer a"}, 200},
		{[]string{"X-Api-Key", "a"}, 200},
		{[]string{"Authorization", "Bearer b"}, 404},
		{nil, 404},
	} {
		if resp, got := r.post("/v1/responses/resp_1/cancel", "", c.head...); resp.StatusCode != c.status {
			t.Errorf("%q: got %d %s; want %d", c.head, resp.StatusCode, got, c.status)
		}
	}
}
