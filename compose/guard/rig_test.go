package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/client"
	"go.uber.org/goleak"

	"roundhouse/configs"
	"roundhouse/worker/device"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testConfig = `
pool "vllm" {
  driver       = "docker"
  image        = "intel/llm-scaler-vllm:0.21"
  volumes      = ["/models:/models:ro"]
  network_mode = "host"
  ipc          = "host"
  shm_size     = "32GiB"
  ulimits      = { memlock = -1 }
  labels       = { team = "search" }
  environment  = { NVIDIA_DRIVER_CAPABILITIES = "compute" }
  worker "old" {
    takeover = "vllm_1"
    gpus     = ["0000:18:00.0"]
    port     = 8008
  }
  worker "green" { gpus = ["GPU-0a"] }
}
pool "chat" {
  driver   = "docker"
  image    = "worker-cpu"
  volumes  = ["/chat:/chat"]
  networks = ["roundhouse"]
  devices  = "cpu"
  workers  = 2
}
pool "wide" {
  driver        = "docker"
  image         = "vllm/vllm-openai:v0.21.0"
  gpus_per_worker = 2
  cap_add       = ["SYS_PTRACE", "cap_ipc_lock"]
  security_opt  = ["no-new-privileges", "apparmor=docker-default"]
  devices_extra = ["/dev/infiniband/uverbs0", "/dev/kfd"]
  pids_limit    = 4096
  memory        = "64GiB"
  extra_hosts   = ["cache.example:10.0.0.7"]
  volumes       = ["/models:/models:ro", "/cache:/cache"]
  environment   = { NVIDIA_DRIVER_CAPABILITIES = "compute" }
  worker "own" {
    environment = { NVIDIA_DRIVER_CAPABILITIES = "all" }
    volumes     = ["/cache/own:/cache"]
  }
  worker "other" {}
}
pool "any" {
  driver = "docker"
  image  = "registry.example:5000/worker@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
}
`

// machine is what the tests' machine has: two GPUs of Intel's, one in its processor, and
// one of NVIDIA's.
func machine() []device.GPU {
	return []device.GPU{
		{PCI: "0000:00:02.0", Vendor: "intel", Driver: "i915", Integrated: true, Render: "/dev/dri/renderD130", Card: "/dev/dri/card2"},
		{PCI: "0000:18:00.0", Vendor: "intel", Driver: "xe", Render: "/dev/dri/renderD128", Card: "/dev/dri/card0"},
		{PCI: "0000:4b:00.0", Vendor: "intel", Driver: "xe", Render: "/dev/dri/renderD129", Card: "/dev/dri/card1"},
		{PCI: "0000:5e:00.0", Vendor: "nvidia", Driver: "nvidia", Render: "/dev/dri/renderD131", Card: "/dev/dri/card3"},
	}
}

func policy(t testing.TB) *Policy {
	t.Helper()
	cfg, err := configs.Parse("c.hcl", []byte(testConfig), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return PolicyOf(cfg, "here")
}

// id is an identity that stands for one thing in the tests.
func id(digit string) string { return strings.Repeat(digit, 64) }

// engine is a Docker engine as far as the guard sees it.
type engine struct {
	mu     sync.Mutex
	asked  []*http.Request
	bodies []string
	known  map[string]string // answers, by path without the version
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, r)
	e.bodies = append(e.bodies, string(text))
	path := r.URL.Path[len(version.FindString(r.URL.Path)):]
	answer, ok := e.known["/"+strings.TrimPrefix(path, "/")]
	switch {
	case ok:
		fmt.Fprint(w, answer)
	case strings.HasSuffix(path, "/json") && strings.Contains(path, "/"):
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message":"no such thing"}`)
	case path == "_ping" || path == "/_ping":
		w.Header().Set("Api-Version", "1.51")
	case strings.HasSuffix(path, "containers/create"):
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"Id":%q}`, id("f"))
	default:
		fmt.Fprint(w, `{}`)
	}
}

// last is what the engine was asked last, and that request's body.
func (e *engine) last() (*http.Request, string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.asked) == 0 {
		return nil, ""
	}
	return e.asked[len(e.asked)-1], e.bodies[len(e.bodies)-1]
}

func (e *engine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

// learn has the engine know a container.
func (e *engine) learn(name, id, image string, labels map[string]string) {
	answer := map[string]any{"Id": id, "Name": "/" + name, "Image": "sha256:" + image, "Config": map[string]any{"Labels": labels}}
	text, err := json.Marshal(answer)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known["/containers/"+name+"/json"], e.known["/containers/"+id+"/json"] = string(text), string(text)
}

// learnImage has the engine know an image.
func (e *engine) learnImage(name, id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known["/images/"+name+"/json"] = fmt.Sprintf(`{"Id":"sha256:%s"}`, id)
}

// rig is a guard before such an engine, and Docker's own client before the guard.
type rig struct {
	*engine
	guard  *Guard
	url    string
	client *client.Client
}

func newRig(t *testing.T) *rig {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "engine.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{engine: &engine{known: map[string]string{}}}
	behind := &httptest.Server{Listener: l, Config: &http.Server{Handler: r.engine}}
	behind.Start()
	t.Cleanup(behind.Close)
	r.guard = guardOf(t, socket)
	front := httptest.NewServer(r.guard)
	t.Cleanup(front.Close)
	t.Cleanup(r.guard.Close)
	r.url = front.URL
	r.client, err = client.NewClientWithOpts(client.WithHost("tcp://"+front.Listener.Addr().String()), client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.client.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return r
}

func guardOf(t testing.TB, socket string) *Guard {
	p := policy(t)
	g := New(socket, func() *Policy { return p }, slog.New(slog.NewTextHandler(io.Discard, nil)))
	g.cards = machine
	return g
}

// send asks the guard, and returns the status and the answer.
func (r *rig) send(t *testing.T, method, path, body string, header http.Header) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(answer)
}

// refused has the guard refuse a request, itself and in words, before the engine.
func (r *rig) refused(t *testing.T, method, path, body, want string) {
	t.Helper()
	status, answer := r.send(t, method, path, body, nil)
	if status != http.StatusForbidden || !strings.Contains(answer, "docker-guard") || !strings.Contains(answer, want) {
		t.Errorf("%s %s %s: status %d, %s; want it refused with %q", method, path, body, status, answer, want)
	}
}

// made is the body that goes to the engine for one that came.
func made(t testing.TB, g *Guard, name, body string) (string, error) {
	t.Helper()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/v1.41/containers/create?name="+name, strings.NewReader(body))
	out, err := g.request(r)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), nil
}

const old = `"Image":"intel/llm-scaler-vllm:0.21","Labels":{"roundhouse.instance":"here","roundhouse.pool":"vllm","roundhouse.worker":"vllm/old"}`

// body is a create body around a HostConfig.
func body(host string) string {
	return `{` + old + `,"Cmd":["serve"],"Env":["A=b"],"Hostname":"","Volumes":null,"HostConfig":` + host + `}`
}
