package pods

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/kube"
	"roundhouse/kube/kubetest"
	"roundhouse/supervisor/core"
)

// TestLead takes a Lease that nobody holds or renews, and gives up one that cannot be
// renewed before another may take it. No clock but its own counts.
func TestLead(t *testing.T) {
	now := time.Now()
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	l := lead{holder: "me"}
	if l.free(now) || l.holds(now) {
		t.Error("a Lease that was not read is free, or held")
	}
	l.note(kube.Record{}, now)
	if !l.free(now) {
		t.Error("a Lease of nobody is not free")
	}
	l.note(kube.Record{Holder: "you", Renewed: "long ago"}, now)
	if l.free(at(14)) || !l.free(at(15)) {
		t.Error("it is not free after 15 seconds without a change")
	}
	l.note(kube.Record{Holder: "you", Renewed: "just now"}, at(14))
	if l.free(at(28)) || !l.free(at(29)) {
		t.Error("a change does not count from when it is seen")
	}
	l.wrote = at(30)
	l.note(kube.Record{Holder: "me", Renewed: "now"}, at(31))
	if !l.holds(at(39)) || l.holds(at(40)) || l.free(at(60)) {
		t.Error("its holder does not give it up 5 seconds before another may take it")
	}
}

// rotating is a Rotator that is asked by hand.
func rotating(t *testing.T, api *kubetest.Server, holder string) *Rotator {
	t.Helper()
	client, err := kube.New(kube.Options{URL: api.URL, Folder: api.Folder})
	if err != nil {
		t.Fatal(err)
	}
	r := New(Options{Pool: Pool{Name: "Chat_1", Drain: time.Minute, Ready: time.Minute, MinReady: -1}, Client: client, Namespace: "here", Holder: holder,
		Known: func() map[string]Known { return map[string]Known{"a": {Idle: true}, "b": {Idle: true}} }, Fault: func(error) {}, Log: slog.New(slog.DiscardHandler)})
	pods := map[string]kube.Pod{}
	for _, name := range []string{"a", "b"} {
		var p kube.Pod
		p.Metadata.Name = name
		p.Status.Conditions = append(p.Status.Conditions, struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		}{"Ready", "True"})
		pods["uid-"+name] = p
		api.Change(kubetest.Pods, "uid-"+name, kubetest.Pod(name, "10.0.0.1", true))
	}
	r.See(pods)
	return r
}

// TestOneActs has two Rotators share a Lease: one acts, a command to the other counts, a
// Lease that somebody else has written meanwhile has nothing done, and an API server that is
// away does no harm.
func TestOneActs(t *testing.T) {
	api := kubetest.New(t)
	var evictions atomic.Int64
	api.Evicted = func(string, string) { evictions.Add(1) }
	one, two := rotating(t, api, "one"), rotating(t, api, "two")
	ctx := t.Context()
	look := func(r *Rotator) {
		t.Helper()
		r.lead.read = time.Time{}
		if err := r.look(ctx); err != nil {
			t.Fatal(err)
		}
	}
	look(one)
	look(two)
	if one.lead.record.Holder != "one" || two.lead.record.Holder != "one" || !one.lead.holds(time.Now()) || two.lead.holds(time.Now()) {
		t.Fatalf("the holders are %+v, %+v", one.lead, two.lead)
	}
	state, err := two.Command(ctx, func(in State, seen []Pod) (State, error) { return Rotate(in, seen, []string{"b"}, time.Now()) })
	if err != nil || state.Rotation.ID != 1 {
		t.Fatal(state, err)
	}
	if _, err := two.Command(ctx, func(in State, seen []Pod) (State, error) { return Rotate(in, seen, nil, time.Now()) }); !errors.Is(err, core.ErrState) {
		t.Errorf("two rotations at once: %v", err)
	}
	look(two)
	look(one)
	if turn := one.state.Rotation.Turn; turn == nil || turn.Name != "b" {
		t.Fatalf("the holder's rotation is %+v", one.state.Rotation)
	}
	if shown := two.Rotation(); shown == nil || shown.Current != nil {
		t.Errorf("the other shows %+v before it has read", shown)
	}
	look(two)
	if shown := two.Rotation(); shown.Current == nil || *shown.Current != "b" || shown.Pool != "Chat_1" {
		t.Errorf("the other shows %+v", shown)
	}

	// Somebody else writes between the holder's read and its write.
	if _, err := two.Command(ctx, func(in State, _ []Pod) (State, error) { return Abort(in, "operator", time.Now()) }); err != nil {
		t.Fatal(err)
	}
	if err := one.look(ctx); err != nil { // on what it read before
		t.Fatal(err)
	}
	look(one)
	if r := one.state.Rotation; r.State != Halted || r.Reason != "aborted by operator" {
		t.Errorf("the holder's rotation is %+v", r)
	}

	api.With(func() { api.Refuse = 503 })
	one.lead.read = time.Time{}
	if err := one.look(ctx); err == nil || !strings.Contains(err.Error(), `rotation of pool "Chat_1"`) || !strings.Contains(err.Error(), "503") {
		t.Errorf("an API server that is away: %v", err)
	}
	api.With(func() { api.Refuse = 0 })
	look(one)
	one.release(context.Background())
	look(two)
	if two.lead.record.Holder != "two" || evictions.Load() != 0 {
		t.Errorf("the Lease is held by %q; %d pods were evicted", two.lead.record.Holder, evictions.Load())
	}
	lease := api.Get(kubetest.Leases, "uid-"+one.lease.Name)
	if spec, _ := lease["spec"].(kubetest.Object); spec["leaseTransitions"] != 3.0 || spec["leaseDurationSeconds"] != 15.0 {
		t.Errorf("the Lease is %v", lease)
	}
}

// TestLeaseName has pools that are not the same have Leases of their own, under names that
// the API server takes.
func TestLeaseName(t *testing.T) {
	object := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	owner := map[string]string{}
	for _, pool := range []string{"chat_1", "chat-1", "Chat-1", "chat.1", "chat.-1", "chat-1-", "a", strings.Repeat("m", 63)} {
		for _, of := range []string{"selector app=vllm", "selector app=other", "inference_pool app=vllm"} {
			name := LeaseName(pool, of)
			if !object.MatchString(name) || len(name) > 253 {
				t.Errorf("the Lease of %q is called %q", pool, name)
			}
			if other := owner[name]; other != "" {
				t.Errorf("%q of %s and %s have one Lease, %s", pool, of, other, name)
			}
			owner[name] = pool + " of " + of
			if again := LeaseName(pool, of); again != name {
				t.Errorf("two doors of %q look at %s and %s", pool, name, again)
			}
		}
	}
}

// TestSlowServer has an API server that does not answer hold up nobody who sees pods or
// looks at the rotation: the doors' own view of the pods comes the same way.
func TestSlowServer(t *testing.T) {
	api := kubetest.New(t)
	r := rotating(t, api, "one")
	done := make(chan error, 1)
	api.With(func() { // it answers nothing meanwhile
		go func() { done <- r.look(t.Context()) }()
		for r.acting.TryLock() {
			r.acting.Unlock()
			runtime.Gosched()
		}
		r.See(map[string]kube.Pod{})
		if r.Rotation() != nil || len(r.Preview()) != 0 {
			t.Error("it shows a rotation, or pods that are gone")
		}
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
