package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"roundhouse/kube/kubetest"
)

// client makes a client of a stand-in.
func client(t *testing.T, s *kubetest.Server) *Client {
	t.Helper()
	c, err := New(Options{URL: s.URL, Folder: s.Folder})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// view is what a pool's owner has been told.
type view struct {
	mu   sync.Mutex
	last []Member
	n    int
	err  error // why the pool is not in view
}

func (v *view) fault(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
}

// told waits until the fault says all of want; none: until there is none.
func (v *view) told(t *testing.T, want ...string) {
	t.Helper()
	for began := time.Now(); ; <-time.After(5 * time.Millisecond) {
		v.mu.Lock()
		err := v.err
		v.mu.Unlock()
		ok := (err == nil) == (len(want) == 0)
		for _, w := range want {
			ok = ok && strings.Contains(err.Error(), w)
		}
		if ok {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("the fault is %v after a minute; want %q", err, want)
		}
	}
}

func (v *view) take(m []Member) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last, v.n = slices.Clone(m), v.n+1
}

func (v *view) names() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var names []string
	for _, m := range v.last {
		name := m.Name + "=" + m.Address
		switch {
		case m.Leaving:
			name += " leaves"
		case !m.Ready:
			name += " waits"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// hold starts a pool's watch.
func hold(t *testing.T, p *Pool) *view {
	t.Helper()
	v := &view{}
	p.Changed, p.Fault, p.pause = v.take, v.fault, time.Millisecond
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		p.Run(ctx)
		close(done)
	}()
	t.Cleanup(func() { end(); <-done })
	return v
}

func until(t *testing.T, v *view, want string) {
	t.Helper()
	for began := time.Now(); v.names() != want; <-time.After(5 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("there is %q after a minute; want %q", v.names(), want)
		}
	}
}

// TestPool follows pods through their lives, and through what befalls the server.
func TestPool(t *testing.T) {
	s := kubetest.New(t)
	s.Page = 2
	for i := range 5 {
		s.Change(kubetest.Pods, fmt.Sprint("u", i), kubetest.Pod(fmt.Sprint("a", i), fmt.Sprint("10.0.0.", i), true))
	}
	v := hold(t, &Pool{Client: client(t, s), Selector: "app=vllm", Ports: []int{8000}})
	until(t, v, "a0=10.0.0.0:8000, a1=10.0.0.1:8000, a2=10.0.0.2:8000, a3=10.0.0.3:8000, a4=10.0.0.4:8000")
	for i := 2; i < 5; i++ {
		s.Change(kubetest.Pods, fmt.Sprint("u", i), nil)
	}
	s.Change(kubetest.Pods, "u1", kubetest.Pod("a1", "10.0.0.1", false))
	s.Change(kubetest.Pods, "u0", kubetest.Pod("a0", "10.0.0.0", true, kubetest.Object{"deletionTimestamp": "2026-11-22T11:00:30Z", "deletionGracePeriodSeconds": 30}))
	until(t, v, "a0=10.0.0.0:8000 leaves, a1=10.0.0.1:8000 waits")
	if got := v.last[0].Until.UTC().Format(time.TimeOnly); got != "11:00:15" {
		t.Errorf("its streams have until %s", got)
	}
	before := v.n
	s.Say(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"50"}}}`)
	s.Say(`{"type":"UNHEARD-OF","object":{}}`)
	s.With(func() { s.Version = 60 })
	s.End() // it goes on from the bookmark
	s.Change(kubetest.Pods, "u0", nil)
	until(t, v, "a1=10.0.0.1:8000 waits")
	if v.n != before+1 {
		t.Errorf("told %d times of one change", v.n-before)
	}

	s.With(func() { s.Oldest = 1 << 20 }) // 410: all is listed again
	s.Change(kubetest.Pods, "u1", nil)
	s.Change(kubetest.Pods, "u9", kubetest.Pod("a9", "10.0.0.9", true))
	s.End()
	until(t, v, "a9=10.0.0.9:8000")
	s.With(func() { s.Oldest = 0 })

	harms := map[string]func(){
		"503": func() { s.Refuse = 503 }, "403": func() { s.Refuse = 403 }, "has no uid": func() { s.Garbage = `{"items":[{"metadata":{}}]}` },
		"no resourceVersion": func() { s.Garbage = `{"items":[]}` }, "invalid character": func() { s.Garbage = "<html>" },
		"does not end": func() { s.Garbage = `{"metadata":{"continue":"x","resourceVersion":"1"},"items":[]}` },
	}
	for says, harm := range harms {
		s.With(harm)
		s.End()
		v.told(t, says)
		if got := v.names(); got != "a9=10.0.0.9:8000" {
			t.Errorf("%s: the pool is %q", says, got)
		}
		s.With(func() { s.Refuse, s.Garbage = 0, "" })
		v.told(t)
	}
	s.With(func() { s.Token = "two" })
	if err := os.WriteFile(filepath.Join(s.Folder, "token"), []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.End()
	s.Change(kubetest.Pods, "u9", kubetest.Pod("a9", "10.0.0.10", true))
	until(t, v, "a9=10.0.0.10:8000")
}

// TestSilentWatch asks again where a watch says nothing for too long.
func TestSilentWatch(t *testing.T) {
	s := kubetest.New(t)
	s.Mute = true
	v := &view{}
	w := Watch[Pod]{Client: client(t, s), Path: kubetest.Pods, Fault: v.fault, silence: 50 * time.Millisecond, pause: time.Millisecond,
		Seen: func(all map[string]Pod) { v.take(Members(all, []int{1})) }}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go w.Run(ctx)
	until(t, v, "")
	s.Change(kubetest.Pods, "u", kubetest.Pod("a", "10.0.0.1", true))
	until(t, v, "a=10.0.0.1:1") // a list tells what the watch does not
	v.told(t)
}

// inference is an InferencePool that selects pods by the label app.
func inference(app string, ports ...int) kubetest.Object {
	var targets []any
	for _, p := range ports {
		targets = append(targets, kubetest.Object{"number": p})
	}
	return kubetest.Object{"metadata": kubetest.Object{"name": "chat"}, "spec": kubetest.Object{
		"selector": kubetest.Object{"matchLabels": kubetest.Object{"app": app}}, "targetPorts": targets}}
}

// TestInferencePool takes selector and ports of an InferencePool, and those that it has
// later; what is wrong with it is told, and leaves the pods that there are.
func TestInferencePool(t *testing.T) {
	s := kubetest.New(t)
	s.Change(kubetest.Pods, "u1", kubetest.Pod("a", "10.0.0.1", true))
	s.Change(kubetest.Pods, "u2", kubetest.Pod("b", "10.0.0.2", true, kubetest.Object{"labels": kubetest.Object{"app": "other"}}))
	v := hold(t, &Pool{Client: client(t, s), Inference: "chat"})
	v.told(t, "there is no InferencePool here/chat")
	s.Change(kubetest.InferencePools, "p", inference("vllm", 8000))
	until(t, v, "a=10.0.0.1:8000")
	v.told(t)
	s.Change(kubetest.InferencePools, "p", inference("vllm"))
	v.told(t, "here/chat", "targetPorts")
	s.Change(kubetest.InferencePools, "p", nil)
	v.told(t, "there is no InferencePool")
	if got := v.names(); got != "a=10.0.0.1:8000" {
		t.Errorf("an InferencePool that is gone leaves %q", got)
	}
	s.Change(kubetest.InferencePools, "p", inference("other", 8000, 8001))
	until(t, v, "b-8000=10.0.0.2:8000, b-8001=10.0.0.2:8001")
	v.told(t)
}

// TestMembers reads pods of every kind.
func TestMembers(t *testing.T) {
	at := func(s string) time.Time { v, _ := time.Parse(time.RFC3339, s); return v }
	make := func(name, ip string) (p Pod) {
		p.Metadata.Name, p.Status.PodIP, p.Metadata.CreationTimestamp = name, ip, at("2026-11-22T10:00:00Z")
		return p
	}
	ended, narrowed, again := make("ended", "10.0.0.1"), make("narrowed", "10.0.0.2"), make("again", "fd00::1")
	ended.Status.Phase = "Failed"
	narrowed.Metadata.Annotations = map[string]string{activePorts: "8001, 9, x"}
	old := make("again", "10.0.0.3")
	again.Metadata.CreationTimestamp = at("2026-11-22T10:00:01Z")
	got := Members(map[string]Pod{"1": ended, "2": narrowed, "3": again, "4": old, "5": make("none", ""), "6": make("odd", "999.1.1.1")}, []int{8000, 8001})
	var names []string
	for _, m := range got {
		names = append(names, m.Name+" "+m.Address)
	}
	if want := "again-8000 [fd00::1]:8000, again-8001 [fd00::1]:8001, narrowed-8001 10.0.0.2:8001"; strings.Join(names, ", ") != want {
		t.Errorf("got %s", strings.Join(names, ", "))
	}
	restarted := again
	restarted.Status.Containers = []struct {
		RestartCount int `json:"restartCount"`
	}{{2}}
	if old.member().Generation >= again.member().Generation || again.member().Generation >= restarted.member().Generation {
		t.Error("a generation does not rise")
	}
}

// FuzzEvent takes whatever a server sends for a change.
func FuzzEvent(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"metadata":{"uid":"u","resourceVersion":"1","name":"a"},"status":{"podIP":"10.0.0.1"}}}`))
	f.Add([]byte(`{"type":"DELETED","object":{"metadata":{"uid":"u"}}}`))
	f.Add([]byte(`{"type":"BOOKMARK","object":{}}`))
	f.Add([]byte(`{"type":"ERROR","object":{"code":410}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		w := Watch[Pod]{all: map[string]Pod{}, Seen: func(all map[string]Pod) { Members(all, []int{1, 2}) }}
		if err := w.event(line); err == nil && len(w.all) > 1 {
			t.Error("one change made several objects")
		}
	})
}
