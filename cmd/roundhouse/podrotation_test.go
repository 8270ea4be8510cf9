package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/balancer/sim"
	"roundhouse/configs"
	"roundhouse/kube"
	"roundhouse/kube/kubetest"
	"roundhouse/supervisor/pods"
	"roundhouse/test/ports"
)

// owner replaces pods that are evicted, as a Deployment and a kubelet do: the engine ends
// once it has no request, or once its grace is over, and another pod comes.
type owner struct {
	*testing.T
	api *kubetest.Server

	mu      sync.Mutex
	spare   []*sim.Worker
	made    int
	engines map[string]*sim.Worker // by UID
	evicted int
}

// ports makes the engines of all pods to come, and says where they listen.
func (o *owner) ports(n int) (targets []any) {
	for range n {
		w := sim.New(sim.Options{Own: true, Words: 20, Pace: 5 * time.Millisecond})
		if err := w.Start(); err != nil {
			o.Fatal(err)
		}
		o.Cleanup(w.Stop)
		o.spare = append(o.spare, w)
		port, err := strconv.Atoi(w.URL[strings.LastIndexByte(w.URL, ':')+1:])
		if err != nil {
			o.Fatal(err)
		}
		targets = append(targets, kubetest.Object{"number": port})
	}
	return targets
}

// add makes a pod with an engine.
func (o *owner) add() {
	o.mu.Lock()
	w := o.spare[o.made]
	o.made++
	name := fmt.Sprintf("vllm-%d", o.made)
	o.engines["uid-"+name] = w
	o.mu.Unlock()
	o.api.Change(kubetest.Pods, "uid-"+name, o.pod(name, w))
}

func (o *owner) pod(name string, w *sim.Worker, more ...kubetest.Object) kubetest.Object {
	u, err := url.Parse(w.URL)
	if err != nil {
		o.Error(err)
	}
	more = append(more, kubetest.Object{"annotations": kubetest.Object{"inference.networking.k8s.io/active-ports": u.Port()}})
	return kubetest.Pod(name, u.Hostname(), true, more...)
}

// replace is what becomes of a pod that is evicted.
func (o *owner) replace(_, uid string) {
	o.mu.Lock()
	w, name := o.engines[uid], strings.TrimPrefix(uid, "uid-")
	o.evicted++
	o.mu.Unlock()
	if n := w.Live.Load(); n != 0 {
		o.Errorf("%s is evicted with %d requests", name, n)
	}
	o.api.Change(kubetest.Pods, uid, o.pod(name, w, kubetest.Object{"deletionTimestamp": time.Now().Add(30 * time.Second).UTC().Format(time.RFC3339), "deletionGracePeriodSeconds": 30}))
	w.Stop()
	o.api.Change(kubetest.Pods, uid, nil)
	o.add()
}

// rotatingDoor is `roundhouse balance` in front of pods that it rotates.
type rotatingDoor struct {
	url, admin string
	end        func()
}

func newRotatingDoor(t *testing.T, api *kubetest.Server) *rotatingDoor {
	t.Helper()
	file := filepath.Join(t.TempDir(), "roundhouse.hcl")
	at, admin := ports.Address(t), ports.Address(t)
	text := fmt.Sprintf("door {\n  listen = %q\n}\nadmin {\n  listen = %q\n}\npool \"p\" {\n  driver = \"kubernetes\"\n  inference_pool = \"chat\"\n  rotation {\n    schedule = \"0 3 * * *\"\n    drain_timeout = \"30s\"\n  }\n}\n", at, admin)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := inPod(t, api, io.Discard)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	f := balanceFlags{file: file, fd: -1, account: api.Folder, times: pods.Times{
		Look: 50 * time.Millisecond, Renews: 200 * time.Millisecond, Again: 200 * time.Millisecond, Settles: 300 * time.Millisecond, Proof: 300 * time.Millisecond,
	}}
	go func() { done <- c.balance(ctx, f) }()
	d := &rotatingDoor{url: "http://" + at, admin: "http://" + admin}
	d.end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.end)
	return d
}

// last is the pool's last rotation as a door shows it.
func (d *rotatingDoor) last() (r struct {
	State, Reason string
	Done          []string
	Waiting       string
}) {
	var all struct{ Rotations []json.RawMessage }
	resp, err := http.Get(d.admin + "/api/rotations")
	if err != nil {
		return r
	}
	defer resp.Body.Close()
	if json.NewDecoder(resp.Body).Decode(&all) == nil && len(all.Rotations) > 0 {
		_ = json.Unmarshal(all.Rotations[0], &r) // an unknown shape is no end
	}
	return r
}

// TestRotatesPods has two doors rotate three pods under load, by eviction, one after the
// other; the door that holds the Lease ends in the middle, and the other goes on. Each
// stream comes whole, no engine is ended with a request, and no pod keeps a mark.
func TestRotatesPods(t *testing.T) {
	api := kubetest.New(t)
	o := &owner{T: t, api: api, engines: map[string]*sim.Worker{}}
	api.Evicted = o.replace
	targets := o.ports(6)
	for range 3 {
		o.add()
	}
	api.Change(kubetest.InferencePools, "pool", kubetest.Object{"metadata": kubetest.Object{"name": "chat"}, "spec": kubetest.Object{
		"selector": kubetest.Object{"matchLabels": kubetest.Object{"app": "vllm"}}, "targetPorts": targets}})
	first := newRotatingDoor(t, api)
	wait(t, "the first door holds the Lease", func() bool { return holderOf(api) != "" })
	second := newRotatingDoor(t, api)
	for _, d := range []*rotatingDoor{first, second} {
		wait(t, "three pods serve", func() bool {
			resp, err := http.Get(d.admin + "/api/pools")
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			return err == nil && strings.Contains(string(text), `"ready":3`)
		})
	}

	var streams, lost atomic.Int64
	load, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for load.Err() == nil {
				resp, err := http.Post(second.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"sim","stream":true,"messages":[{"role":"user","content":"x"}]}`))
				if err != nil {
					t.Error(err)
					return
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if streams.Add(1); err != nil || !strings.HasSuffix(strings.TrimSpace(string(text)), "data: [DONE]") {
					lost.Add(1)
					t.Errorf("a stream ends with %v %s", err, text)
				}
			}
		})
	}
	defer clients.Wait()
	defer stop()

	// The door that does not hold the Lease is asked, as a Service may have it.
	resp, err := http.Post(second.admin+"/api/pools/p/rotate", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || resp.Body.Close() != nil {
		t.Fatalf("%d %s %v", resp.StatusCode, text, err)
	}
	wait(t, "a pod has been replaced", func() bool { return len(second.last().Done) > 0 })
	was := holderOf(api)
	first.end()
	wait(t, "the rotation is over", func() bool { s := second.last().State; return s == "done" || s == "halted" })
	if r := second.last(); r.State != "done" || len(r.Done) != 3 {
		t.Errorf("the rotation is %+v", r)
	}
	if now := holderOf(api); now == was || now == "" {
		t.Errorf("the Lease is held by %q, before by %q", now, was)
	}
	stop()
	clients.Wait()
	if o.evicted != 3 || lost.Load() != 0 || streams.Load() == 0 {
		t.Errorf("%d pods were evicted; %d of %d streams are lost", o.evicted, lost.Load(), streams.Load())
	}
	for uid := range o.engines {
		if pod := api.Get(kubetest.Pods, uid); pod != nil && at(pod, "metadata", "annotations", "roundhouse.dev/drain") != nil {
			t.Errorf("%s is still marked", uid)
		}
	}
	used := asked(api)
	used["list poddisruptionbudgets.policy"] = true // the doctor's
	same(t, used, rights(kube.Rights(true, true)))
}

// holderOf is who holds the pool's Lease.
func holderOf(api *kubetest.Server) string {
	lease := api.Get(kubetest.Leases, "uid-"+pods.LeaseName("p", podsOf(configs.Pods{InferencePool: "chat"})))
	holder, _ := at(lease, "spec", "holderIdentity").(string)
	return holder
}

// wait waits until something holds.
func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); <-time.After(10 * time.Millisecond) {
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("not in two minutes: %s", what)
		}
	}
}
