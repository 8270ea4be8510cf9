package guard

import (
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

	"go.uber.org/goleak"

	"roundhouse/configs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const config = `
pool "vllm" {
  driver       = "docker"
  image        = "vllm:1"
  volumes      = ["/models:/models:ro"]
  network_mode = "host"
  ipc          = "host"
  worker "old" { takeover = "vllm_1" }
}
`

func policy(t testing.TB) *Policy {
	t.Helper()
	cfg, err := configs.Parse("c.hcl", []byte(config), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return PolicyOf(cfg, "here")
}

// body is a create body around a HostConfig.
func body(host string) string {
	return fmt.Sprintf(`{"Image":"vllm:1","Cmd":["serve"],"Env":["A=b"],"Hostname":"","Volumes":null,"Labels":{"roundhouse.instance":"here"},"HostConfig":%s}`, host)
}

func TestCreate(t *testing.T) {
	p := policy(t)
	pass := func(text string) {
		t.Helper()
		out, err := p.create([]byte(text))
		if err != nil || !json.Valid(out) {
			t.Errorf("refused %s: %v", text, err)
		}
	}
	refuse := func(text, want string) {
		t.Helper()
		if _, err := p.create([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want it to say %q", text, err, want)
		}
	}
	pass(body(`{"Binds":["/models:/models:ro"],"NetworkMode":"host","IpcMode":"host","Privileged":false,"CapAdd":null,"ShmSize":34359738368}`))
	pass(body(`{"Devices":[{"PathOnHost":"/dev/dri/renderD128","PathInContainer":"/dev/dri/renderD128","CgroupPermissions":"rw"}],"RestartPolicy":{"Name":"no","MaximumRetryCount":0}}`))
	pass(body(`{"Devices":[{"PathOnHost":"/dev/dri/by-path/pci-10000:18:00.0-card","PathInContainer":"/dev/dri/by-path/pci-10000:18:00.0-card"}]}`))
	pass(body(`{"Mounts":[{"Type":"bind","Source":"/models","Target":"/models","ReadOnly":true}],"PortBindings":{"8000/tcp":[{"HostIp":"127.0.0.1","HostPort":"8008"}]}}`))

	for host, want := range map[string]string{
		`{"Privileged":true}`:                                                "HostConfig.Privileged may not be set",
		`{"privileged":true}`:                                                "HostConfig.privileged may not be set",
		`{"Privileged":false,"privileged":true}`:                             "there twice",
		`{"PidMode":"host"}`:                                                 "PidMode may not be set",
		`{"CapAdd":["SYS_ADMIN"]}`:                                           "CapAdd may not be set",
		`{"UsernsMode":"host"}`:                                              "UsernsMode may not be set",
		`{"VolumesFrom":["other"]}`:                                          "VolumesFrom may not be set",
		`{"DeviceCgroupRules":["a *:* rwm"]}`:                                "DeviceCgroupRules may not be set",
		`{"Runtime":"evil"}`:                                                 "Runtime may not be set",
		`{"CgroupParent":"/"}`:                                               "CgroupParent may not be set",
		`{"Sysctls":{"kernel.core_pattern":"|x"}}`:                           "Sysctls may not be set",
		`{"SecurityOpt":["apparmor=unconfined"]}`:                            "not in the configuration",
		`{"Binds":["/dev/dri/by-path:/dev/dri/by-path"]}`:                    "no volume of the configuration",
		`{"Binds":["/:/host"]}`:                                              "no volume of the configuration",
		`{"Binds":["/models:/models"]}`:                                      "no volume of the configuration", // not read-only
		`{"Binds":["/models/../etc:/models:ro"]}`:                            "no volume of the configuration",
		`{"Mounts":[{"Type":"bind","Source":"/"}]}`:                          "no volume of the configuration",
		`{"Mounts":[{"Type":"volume","Source":"x"}]}`:                        "no volume of the configuration",
		`{"Mounts":[{"Type":"bind","Source":"/models","Target":"/models"}]}`: "no volume of the configuration",
		`{"Mounts":[{"Type":"tmpfs"},{"Type":"bind","Source":"/","Target":"/x","ReadOnly":true}]}`: "no volume",
		`{"NetworkMode":"container:other"}`:                                                 "not in the configuration",
		`{"IpcMode":"container:other"}`:                                                     "not in the configuration",
		`{"Devices":[{"PathOnHost":"/dev/sda","PathInContainer":"/dev/dri/card0"}]}`:        "no GPU's node",
		`{"Devices":[{"PathOnHost":"/dev/dri/../sda","PathInContainer":"/dev/dri/card0"}]}`: "no GPU's node",
		`{"RestartPolicy":{"Name":"always"}}`:                                               "supervisor restarts workers",
		`{"PortBindings":{"8000/tcp":[{"HostIp":"","HostPort":"8008"}]}}`:                   "not published on 127.0.0.1",
		`{"OomScoreAdj":-1000}`:                                                             "0 or more",
		`{"Binds":"/:/host"}`:                                                               "not a list",
		`{"Binds":[["/:/host"]]}`:                                                           "not a list of strings",
	} {
		refuse(body(host), want)
	}
	refuse(`{"Image":"alpine","Labels":{"roundhouse.instance":"here"}}`, "no image of the configuration")
	refuse(`{"Image":"vllm:1"}`, "label roundhouse.instance is missing")
	refuse(`{"Image":"vllm:1","Labels":{"roundhouse.instance":"there"}}`, "is not")
	refuse(`{"Labels":{"roundhouse.instance":"here"}}`, "Image is missing")
	refuse(`{"Image":"vllm:1","Labels":{"roundhouse.instance":"here"}}{}`, "something follows")
	refuse(`not JSON`, "not JSON")
	refuse(`[1]`, "not a JSON object")
	refuse(`{"A":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`}`, "nested more than")
}

// engine is a Docker engine as far as the guard sees it.
type engine struct {
	mu    sync.Mutex
	asked []string
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	e.asked = append(e.asked, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+string(text)))
	e.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/containers/ours/json") {
		fmt.Fprint(w, `{"Name":"/roundhouse-a-1","Config":{"Labels":{"roundhouse.instance":"here"}}}`)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/containers/vllm_1/json") {
		fmt.Fprint(w, `{"Name":"/vllm_1","Config":{"Labels":{}}}`)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/containers/database/json") {
		fmt.Fprint(w, `{"Name":"/database","Config":{"Labels":{"roundhouse.instance":"there"}}}`)
		return
	}
	fmt.Fprint(w, `{}`)
}

func TestRequests(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "engine.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	real := &engine{}
	behind := &httptest.Server{Listener: l, Config: &http.Server{Handler: real}}
	behind.Start()
	defer behind.Close()
	p := policy(t)
	g := New(socket, func() *Policy { return p }, slog.New(slog.NewTextHandler(io.Discard, nil)))
	front := httptest.NewServer(g)
	defer front.Close()
	defer g.engine.CloseIdleConnections()
	defer http.DefaultClient.CloseIdleConnections()

	ask := func(method, url, text string, want int) string {
		t.Helper()
		req, err := http.NewRequest(method, front.URL+url, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, _ := io.ReadAll(res.Body)
		if res.StatusCode != want {
			t.Errorf("%s %s: status %d; want %d: %s", method, url, res.StatusCode, want, answer)
		}
		return string(answer)
	}
	ask("GET", "/_ping", "", 200)
	ask("GET", "/v1.41/containers/json?all=1", "", 200)
	ask("GET", "/v1.41/events?since=1", "", 200)
	ask("POST", "/v1.41/containers/create?name=x", body(`{"NetworkMode":"host"}`), 200)
	ask("POST", "/v1.41/images/create?fromImage=vllm&tag=1", "", 200)
	ask("POST", "/v1.41/containers/ours/stop?t=60", "", 200)
	ask("POST", "/containers/vllm_1/stop", "", 200)
	ask("DELETE", "/v1.41/containers/ours?force=1", "", 200)
	ask("GET", "/v1.41/containers/ours/logs?follow=1", "", 200)

	for _, refused := range []string{
		"POST /v1.41/containers/database/stop", "DELETE /v1.41/containers/database", "GET /v1.41/containers/database/json",
		"POST /v1.41/containers/ours/exec", "POST /v1.41/exec/x/start", "POST /v1.41/containers/ours/attach", "GET /v1.41/containers/ours/archive?path=/",
		"PUT /v1.41/containers/ours/archive?path=/", "POST /v1.41/containers/database/update", "POST /v1.41/build", "POST /v1.41/images/load",
		"POST /v1.41/images/create?fromSrc=http://x", "POST /v1.41/images/create?fromImage=alpine", "POST /v1.41/volumes/create",
		"POST /v1.41/networks/create", "POST /v1.41/swarm/init", "POST /v1.41/plugins/pull", "GET /v1.41/secrets", "POST /v1.41/session",
		"POST /v1.41/containers/%6furs/exec", "POST /v1.41//containers/create", "POST /containers/../containers/create", "POST /v1.41/containers/ours/stop/../exec",
		"GET /v1.41/containers/create",
	} {
		method, url, _ := strings.Cut(refused, " ")
		if answer := ask(method, url, "{}", 403); !strings.Contains(answer, "docker-guard") {
			t.Errorf("%s: the answer does not say who refused: %s", refused, answer)
		}
	}
	if answer := ask("POST", "/v1.41/containers/create", body(`{"Privileged":true}`), 403); !strings.Contains(answer, "HostConfig.Privileged may not be set") {
		t.Error(answer)
	}
	ask("POST", "/v1.41/containers/vllm_1/update", `{"CpuShares":0,"Devices":null,"RestartPolicy":{"Name":"no","MaximumRetryCount":0}}`, 200)
	for _, text := range []string{`{"RestartPolicy":{"Name":"always"}}`, `{"Memory":1}`, `{"Devices":[{"PathOnHost":"/dev/sda"}]}`} {
		if answer := ask("POST", "/v1.41/containers/ours/update", text, 403); !strings.Contains(answer, "docker-guard") {
			t.Error(answer)
		}
	}
	real.mu.Lock()
	defer real.mu.Unlock()
	for _, line := range real.asked {
		if strings.Contains(line, "Privileged") || strings.Contains(line, "exec") {
			t.Errorf("reached the engine: %s", line)
		}
	}
}

// FuzzCreate: what passes is JSON that passes again, and asks for no
// privilege.
func FuzzCreate(f *testing.F) {
	f.Add([]byte(body(`{"Binds":["/models:/models:ro"],"NetworkMode":"host"}`)))
	f.Add([]byte(body(`{"Privileged":false,"privileged":true}`)))
	f.Add([]byte(body(`{"Mounts":[{"Type":"bind","Source":"/models","Target":"/models","ReadOnly":true}]}`)))
	p := policy(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		out, err := p.create(text)
		if err != nil {
			return
		}
		if _, err := p.create(out); err != nil {
			t.Fatalf("passed once and not twice: %v\n%s", err, out)
		}
		var engine struct {
			HostConfig struct {
				Privileged bool
				PidMode    string
				Binds      []string
				CapAdd     []string
			}
		}
		if json.Unmarshal(out, &engine) == nil {
			h := engine.HostConfig
			if h.Privileged || h.PidMode != "" || len(h.CapAdd) > 0 || len(h.Binds) > 0 && h.Binds[0] != "/models:/models:ro" {
				t.Fatalf("let through: %s", out)
			}
		}
	})
}
