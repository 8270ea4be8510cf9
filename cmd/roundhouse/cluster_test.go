package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"roundhouse/balancer/control"
	"roundhouse/balancer/extproc/gatewaytest"
	"roundhouse/balancer/sim"
	"roundhouse/kube"
	"roundhouse/kube/kubetest"
	"roundhouse/test/ports"
)

// podDoor is `roundhouse picker`, a door too, in front of an InferencePool of a stand-in.
type podDoor struct {
	*testing.T
	url, admin, picker, file string
	api                      *kubetest.Server
}

// inPod is a console whose environment is that of a pod in a stand-in's cluster.
func inPod(t *testing.T, api *kubetest.Server, out io.Writer) *console {
	t.Helper()
	host, err := url.Parse(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"KUBERNETES_SERVICE_HOST": host.Hostname(), "KUBERNETES_SERVICE_PORT": host.Port(), "ROUNDHOUSE_ADMIN_TOKEN": "token"}
	return &console{out: out, err: io.Discard, env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
}

func newPodDoor(t *testing.T, api *kubetest.Server) *podDoor {
	d := &podDoor{T: t, api: api, file: filepath.Join(t.TempDir(), "roundhouse.hcl")}
	at, admin := ports.Address(t), ports.Address(t)
	d.url, d.admin, d.picker = "http://"+at, "http://"+admin, ports.Address(t)
	d.write("inference_pool = \"chat\"", at, admin)
	c := inPod(t, api, io.Discard)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	f := pickerFlags{balanceFlags: balanceFlags{file: d.file, fd: -1, account: api.Folder}, listen: []string{"p=" + d.picker}, endpoints: 1}
	go func() { done <- runPicker(ctx, c, f) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return d
}

// write writes the configuration.
func (d *podDoor) write(pool, at, admin string) {
	d.Helper()
	text := fmt.Sprintf("door {\n  listen = %q\n}\nadmin {\n  listen = %q\n}\npool \"p\" {\n  driver = \"kubernetes\"\n  %s\n}\n", at, admin, pool)
	if err := os.WriteFile(d.file, []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
}

// get is an answer's status and text; 0: there is none.
func (d *podDoor) get(url string) (int, string) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body) // what came of it will do
	return resp.StatusCode, string(text)
}

// until waits until an answer says all of want, and nothing behind a "!".
func (d *podDoor) until(url string, status int, want ...string) {
	d.Helper()
	for began := time.Now(); ; <-time.After(5 * time.Millisecond) {
		got, text := d.get(url)
		ok := got == status
		for _, w := range want {
			not, says := strings.CutPrefix(w, "!")
			ok = ok && strings.Contains(text, not) != says
		}
		if ok {
			return
		}
		if time.Since(began) > time.Minute {
			d.Fatalf("%s: %d %.2000s; want %d %q", url, got, text, status, want)
		}
	}
}

// serving waits until gateways are told that the picker takes requests, or that it does
// not.
func (d *podDoor) serving(want healthpb.HealthCheckResponse_ServingStatus) {
	d.Helper()
	h := healthpb.NewHealthClient(gatewaytest.Dial(d.T, d.picker, false))
	for began := time.Now(); ; <-time.After(5 * time.Millisecond) {
		r, err := h.Check(context.Background(), &healthpb.HealthCheckRequest{Service: "readiness"})
		if err == nil && r.Status == want {
			return
		}
		if time.Since(began) > time.Minute {
			d.Fatalf("the picker is %v %v, want %v", r, err, want)
		}
	}
}

// pod is a pod with an engine at a port of this machine's.
func (d *podDoor) pod(name string, w *sim.Worker, ready bool, more ...kubetest.Object) {
	u, err := url.Parse(w.URL)
	if err != nil {
		d.Fatal(err)
	}
	more = append(more, kubetest.Object{"annotations": kubetest.Object{"inference.networking.k8s.io/active-ports": u.Port()}})
	d.api.Change(kubetest.Pods, "uid-"+name, kubetest.Pod(name, u.Hostname(), ready, more...))
}

// TestFollowsPods has a door with a picker follow pods from their first list to their end: it is
// not ready before, serves on while the API server refuses it, tells so, and moves the
// streams of a pod that is being deleted within its grace.
func TestFollowsPods(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true, Words: 20, Pace: time.Minute}), sim.New(sim.Options{Own: true, Words: 20})
	var targets []any
	for _, w := range []*sim.Worker{a, b} {
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		var port int
		if _, err := fmt.Sscanf(w.URL[strings.LastIndexByte(w.URL, ':')+1:], "%d", &port); err != nil {
			t.Fatal(err)
		}
		targets = append(targets, kubetest.Object{"number": port})
	}
	api := kubetest.New(t)
	api.Refuse = http.StatusForbidden
	api.Change(kubetest.InferencePools, "pool", kubetest.Object{"metadata": kubetest.Object{"name": "chat"}, "spec": kubetest.Object{
		"selector": kubetest.Object{"matchLabels": kubetest.Object{"app": "vllm"}}, "targetPorts": targets}})
	d := newPodDoor(t, api)
	fault, none := `roundhouse_door_fault{what="kubernetes"} 1`, `roundhouse_door_fault{what="kubernetes"} 0`
	d.pod("a", a, true)
	d.pod("b", b, false)
	d.until(d.url+"/health", 503, "starting")
	d.until(d.admin+"/api/pools", 200, `pool \"p\"`, "403", "told to")
	d.until(d.url+"/metrics", 200, fault)
	d.serving(healthpb.HealthCheckResponse_NOT_SERVING)
	api.With(func() { api.Refuse = 0 })
	d.until(d.url+"/health", 200)
	d.serving(healthpb.HealthCheckResponse_SERVING)
	d.until(d.admin+"/api/workers", 200, `"p/a-`, `"driver":"kubernetes"`, `"state":"ready"`, `"p/b-`, "its pod is not ready")
	d.until(d.url+"/metrics", 200, none)

	stream, err := http.Post(d.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"sim","stream":true,"messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewReader(stream.Body)
	if first, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(first, "data: ") {
		t.Fatalf("the stream begins with %q %v", first, err)
	}
	d.pod("b", b, true)
	d.until(d.admin+"/api/workers", 200, "!its pod is not ready", "!unreachable")
	api.With(func() { api.Refuse = http.StatusServiceUnavailable })
	api.End()
	d.until(d.url+"/metrics", 200, fault)
	d.until(d.url+"/health", 200)
	d.until(d.admin+"/api/workers", 200, `"p/a-`, `"p/b-`)
	api.With(func() { api.Refuse = 0 })
	d.until(d.url+"/metrics", 200, none)

	end := time.Now().Add(time.Second).UTC().Format(time.RFC3339)
	d.pod("a", a, true, kubetest.Object{"deletionTimestamp": end, "deletionGracePeriodSeconds": 2})
	rest, err := io.ReadAll(lines)
	if err != nil || !bytes.Contains(rest, []byte("[DONE]")) || b.Served.Load() != 1 {
		t.Errorf("the stream of a pod that is being deleted ends with %v %s", err, rest)
	}
	d.until(d.admin+"/api/workers", 200, "its pod is being deleted")
	api.Change(kubetest.Pods, "uid-a", nil)
	d.until(d.admin+"/api/workers", 200, `!"p/a-`, `"p/b-`)

	d.write(fmt.Sprintf("selector = \"app=vllm\"\n  port = %v", targets[1].(kubetest.Object)["number"]), d.url[len("http://"):], d.admin[len("http://"):])
	if resp, err := http.Post(d.admin+"/api/reload", "", nil); err != nil || resp.StatusCode != 200 || resp.Body.Close() != nil {
		t.Fatal(resp, err)
	}
	d.until(d.admin+"/api/workers", 200, `"p/b"`, `!"p/b-`, `"state":"ready"`)
}

// TestPodWorkers tells a door of pods: a person's drain holds as long as the pod, but not
// against its end.
func TestPodWorkers(t *testing.T) {
	soon := time.Now()
	pod := func(name string, generation uint64, ready bool) kube.Member {
		return kube.Member{Name: name, Address: "[fd00::1]:8000", Generation: generation << 16, Ready: ready}
	}
	leaving := pod("leaving", 1, true)
	leaving.Leaving, leaving.Until = true, soon
	marked, stale := pod("marked", 1, true), pod("stale", 1, true)
	marked.Drained, marked.Until = true, soon
	stale.Drained, stale.Until = true, soon.Add(-holds)
	restarted := pod("restarted", 1, false)
	restarted.Generation++
	var was []control.Worker
	for _, name := range []string{"leaving", "restarted", "again", "gone"} {
		was = append(was, control.Worker{Name: name, Generation: 1 << 16, State: "draining", Reason: byOperator})
	}
	was = append(was, control.Worker{Name: "late", Generation: 1 << 16, State: "draining", Reason: "its pod is being deleted"})
	var got []string
	for _, w := range podWorkers([]kube.Member{leaving, restarted, pod("again", 2, true), pod("late", 1, true), pod("new", 1, false), marked, stale}, was) {
		got = append(got, fmt.Sprint(w.Name, " ", w.State, " ", cmp.Or(w.Reason, "-"), " ", w.Deadline != nil, " ", w.URL))
	}
	want := []string{"leaving draining its pod is being deleted true", "restarted draining operator false", "again ready - false", "late ready - false", "new starting its pod is not ready false",
		"marked draining its pod is about to be replaced true", "stale ready - false"}
	for i := range want {
		if want[i] += " http://[fd00::1]:8000"; got[i] != want[i] {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}

// TestPodsAreRefused by those who would have to start them, with what to run instead.
func TestPodsAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "roundhouse.hcl")
	if err := os.WriteFile(file, []byte("pool \"p\" {\n  driver = \"kubernetes\"\n  inference_pool = \"chat\"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"starts and rotates workers":    {"up", "-c", file},
		"run roundhouse balance":        {"supervise", "-c", file, "--door", "x"},
		"and --socket":                  {"balance", "-c", file, "--socket", "x"},
		"this is no pod":                {"balance", "-c", file},
		"KUBERNETES_SERVICE_HOST and K": {"picker", "-c", file},
	} {
		var said bytes.Buffer
		c := &console{out: io.Discard, err: &said, env: func(name string) (string, bool) {
			return map[string]string{"ROUNDHOUSE_ADMIN_TOKEN": "token"}[name], name == "ROUNDHOUSE_ADMIN_TOKEN"
		}}
		if code := c.run(root(c), args); code == 0 || !strings.Contains(said.String(), want) || !strings.Contains(said.String(), `pool "p"`) {
			t.Errorf("%v: %d, %s", args, code, said.String())
		}
	}
}
