package guard

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"
	"go.yaml.in/yaml/v3"

	"roundhouse/supervisor/moby"
)

// ours are the labels of a container of the worker vllm/old.
func ours() map[string]string {
	return map[string]string{moby.LabelInstance: "here", moby.LabelPool: "vllm", moby.LabelWorker: "vllm/old"}
}

// reached is the engine's side of a test: what it was asked last, in one line.
func (r *rig) reached() string {
	req, body := r.last()
	if req == nil {
		return ""
	}
	return strings.TrimSpace(req.Method + " " + req.URL.String() + " " + body)
}

// All that the supervisor asks of an engine passes, by Docker's own client: every
// container by its identity, and no stranger's.
func TestClient(t *testing.T) {
	r := newRig(t)
	r.learn("mine", id("a"), id("1"), ours())
	r.learn("vllm_1", id("b"), id("1"), nil)
	ctx := t.Context()
	want := func(line string, err error) {
		t.Helper()
		if got := r.reached(); err != nil || !strings.HasPrefix(got, strings.ReplaceAll(line, "/v/", "/v1.51/")) {
			t.Errorf("the engine was asked %s (%v); want %s", got, err, line)
		}
	}
	_, err := r.client.ContainerCreate(ctx, &container.Config{Image: "intel/llm-scaler-vllm:0.21", Labels: ours()}, &container.HostConfig{NetworkMode: "host"}, nil, nil, "old")
	want(`POST /v/containers/create?name=old {"Hostname":""`, err)
	want("POST /v/containers/"+id("a")+"/start", r.client.ContainerStart(ctx, "mine", container.StartOptions{}))
	grace := 60
	want("POST /v/containers/"+id("a")+"/stop?t=60", r.client.ContainerStop(ctx, "mine", container.StopOptions{Timeout: &grace}))
	want("POST /v/containers/"+id("b")+"/stop?t=60", r.client.ContainerStop(ctx, "vllm_1", container.StopOptions{Timeout: &grace}))
	want("POST /v/containers/"+id("b")+"/rename?name=vllm_1-before-roundhouse", r.client.ContainerRename(ctx, "vllm_1", "vllm_1-before-roundhouse"))
	_, err = r.client.ContainerUpdate(ctx, "vllm_1", container.UpdateConfig{RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled}})
	want("POST /v/containers/"+id("b")+"/update {", err)
	want("DELETE /v/containers/"+id("a")+"?force=1&v=1", r.client.ContainerRemove(ctx, "mine", container.RemoveOptions{Force: true, RemoveVolumes: true}))
	if logs, err := r.client.ContainerLogs(ctx, "mine", container.LogsOptions{ShowStdout: true, ShowStderr: true, Follow: true, Tail: "10"}); err != nil {
		t.Error(err)
	} else {
		logs.Close()
	}
	want("GET /v/containers/"+id("a")+"/logs?follow=1&stderr=1&stdout=1&tail=10", nil)
	if stats, err := r.client.ContainerStatsOneShot(ctx, "mine"); err != nil {
		t.Error(err)
	} else {
		stats.Body.Close()
	}
	want("GET /v/containers/"+id("a")+"/stats?one-shot=1&stream=0", nil)
	r.known["/containers/json"] = "[]"
	_, err = r.client.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("status", "running"))})
	want("GET /v/containers/json?all=1&filters=%7B%22label%22%3A%7B%22roundhouse.instance%3Dhere%22%3Atrue%7D%2C%22status%22", err)
	_, err = r.client.Info(ctx)
	want("GET /v/info", err)
}

// An image has one name, however it is written, and nothing else is pulled. What was
// met under that name may be run by its identity when the name has moved on.
func TestImages(t *testing.T) {
	r := newRig(t)
	const pinned = "registry.example:5000/worker@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	auth, err := registry.EncodeAuthConfig(registry.AuthConfig{Username: "u", Password: "p"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"intel/llm-scaler-vllm:0.21":           "fromImage=intel%2Fllm-scaler-vllm&tag=0.21",
		"docker.io/intel/llm-scaler-vllm:0.21": "fromImage=intel%2Fllm-scaler-vllm&tag=0.21",
		"worker-cpu":                           "fromImage=worker-cpu&tag=latest",
		"docker.io/library/worker-cpu:latest":  "fromImage=worker-cpu&tag=latest",
		pinned:                                 "fromImage=registry.example%3A5000%2Fworker&tag=sha256%3A0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		strings.Replace(pinned, "worker@", "worker:1@", 1): "fromImage=registry.example%3A5000%2Fworker&tag=sha256%3A0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	} {
		progress, err := r.client.ImagePull(t.Context(), name, image.PullOptions{RegistryAuth: auth})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		progress.Close()
		req, _ := r.last()
		if req.URL.RawQuery != want || req.Header.Get(registry.AuthHeader) != auth {
			t.Errorf("%s: asked as %s with %v; want %s", name, req.URL.RawQuery, req.Header, want)
		}
	}
	before := r.count()
	for _, name := range []string{"alpine", "intel/llm-scaler-vllm:0.20", "intel/llm-scaler-vllm", "evil.example/intel/llm-scaler-vllm:0.21", "registry.example:5000/worker"} {
		if progress, err := r.client.ImagePull(t.Context(), name, image.PullOptions{}); err == nil {
			progress.Close()
			t.Errorf("%s was pulled", name)
		}
		if _, err := r.client.ImageInspect(t.Context(), name); err == nil || !strings.Contains(err.Error(), "docker-guard") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, query := range []string{"fromSrc=http://x", "fromImage=worker-cpu&fromSrc=-", "fromImage=worker-cpu&repo=x", "fromImage=worker-cpu&fromImage=alpine", "fromImage=worker-cpu&platform=linux/s390x", "fromImage=", "tag=1"} {
		r.refused(t, "POST", "/v1.51/images/create?"+query, "", "")
	}
	if status, _ := r.send(t, "POST", "/v1.51/images/create?fromImage=worker-cpu", "", http.Header{registry.AuthHeader: {"bm90IEpTT04="}}); status != http.StatusForbidden {
		t.Error("what is no credentials was shown to a registry")
	}
	if r.count() != before {
		t.Errorf("the engine was asked %s", r.reached())
	}
}

// A roll-back starts what ran before by its identity; a stranger's image stays away.
func TestIdentity(t *testing.T) {
	r := newRig(t)
	create := func(image string) error {
		_, err := r.client.ContainerCreate(t.Context(), &container.Config{Image: image, Labels: ours()}, nil, nil, nil, "old")
		return err
	}
	r.learnImage("intel/llm-scaler-vllm:0.21", id("1"))
	r.learnImage("sha256:"+id("1"), id("1"))
	r.learnImage("alpine:latest", id("9"))
	if err := create("sha256:" + id("1")); err != nil {
		t.Error(err)
	}
	r.learnImage("intel/llm-scaler-vllm:0.21", id("2")) // the name moves on
	for _, digit := range []string{"2", "1"} {
		if err := create("sha256:" + id(digit)); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.client.ImageInspect(t.Context(), "sha256:"+id("1")); err != nil {
		t.Error(err)
	}
	if err := create("sha256:" + id("3")); err == nil {
		t.Error("an image that nobody has heard of")
	}
	r.learn("left", id("a"), id("3"), ours()) // a container that the guard finds after it began anew
	if _, err := r.client.ContainerInspect(t.Context(), "left"); err != nil {
		t.Error(err)
	}
	if err := create("sha256:" + id("3")); err != nil {
		t.Error(err)
	}
	for _, other := range []string{"sha256:" + id("9"), "sha256:" + id("9")[:12], id("9"), "alpine"} {
		if err := create(other); err == nil {
			t.Errorf("%s runs", other)
		}
	}
	r.learn("stranger", id("b"), id("9"), map[string]string{moby.LabelInstance: "there", moby.LabelPool: "vllm"})
	if _, err := r.client.ContainerInspect(t.Context(), "stranger"); err == nil {
		t.Error("a stranger's container was told of")
	}
	if err := create("sha256:" + id("9")); err == nil {
		t.Error("a stranger's image runs")
	}
}

// Whatever happens between the look and the deed, it is done to the container that was
// looked at: a name, or the beginning of an identity, may be a stranger's by then.
func TestRace(t *testing.T) {
	r := newRig(t)
	r.learn("abcdef", id("a"), id("1"), ours())
	if err := r.client.ContainerStop(t.Context(), "abcdef", container.StopOptions{}); err != nil {
		t.Error(err)
	}
	if got := r.reached(); !strings.Contains(got, "/containers/"+id("a")+"/stop") {
		t.Errorf("the engine was asked %s", got)
	}
	if err := r.client.ContainerStop(t.Context(), "gone", container.StopOptions{}); err != nil {
		t.Error(err) // the fake takes every identity
	}
	if got := r.reached(); strings.Contains(got, "gone") {
		t.Errorf("the engine was asked %s: a container of that name may be there by now", got)
	}
	r.learn("strange", "../../images/x", id("1"), ours()) // what the engine names is read, too
	r.refused(t, "POST", "/v1.51/containers/strange/stop", "", "no container's identity")
}

// What was not read does not pass: headers, parameters, a body where there is none to be.
func TestNothingUnread(t *testing.T) {
	r := newRig(t)
	r.learn("mine", id("a"), id("1"), ours())
	header := http.Header{"X-Registry-Config": {"x"}, "X-Registry-Auth": {"x"}, "Upgrade": {"tcp"}, "Connection": {"Upgrade, Upload-Incomplete"}, "X-Forwarded-For": {"1"}, "Traceparent": {"x"}, "Te": {"trailers"}, "Cookie": {"a"}}
	for _, path := range []string{"POST /v1.24/containers/mine/start", "POST /v1.51/containers/create?name=old", "GET /v1.51/info", "POST /v1.51/containers/mine/update"} {
		method, path, _ := strings.Cut(path, " ")
		text := `{"Binds":["/:/host"]}`
		if strings.Contains(path, "create") {
			text = body(`{}`)
		} else if strings.Contains(path, "update") {
			text = `{"CpuShares":0,"Devices":null,"RestartPolicy":{"Name":"no","MaximumRetryCount":0}}`
		}
		if status, answer := r.send(t, method, path, text, header); status >= 300 {
			t.Errorf("%s: %d %s", path, status, answer)
		}
		req, sent := r.last()
		for name := range req.Header {
			if !slices.Contains([]string{"Content-Type", "Content-Length", "Accept-Encoding"}, name) {
				t.Errorf("%s: the engine was sent the header %s: %v", path, name, req.Header)
			}
		}
		if strings.Contains(path, "start") && sent != "" || strings.Contains(sent, "/host") {
			t.Errorf("%s: the engine was sent %s", path, sent)
		}
	}
	for _, path := range []string{
		"POST /v1.51/containers/create?name=old&platform=linux/arm64", "POST /v1.51/containers/create?name=old&name=x", "POST /v1.51/containers/mine/start?checkpoint=x",
		"POST /v1.51/containers/mine/stop?signal=KILL", "DELETE /v1.51/containers/mine?link=1", "GET /v1.51/containers/mine/logs?tail=%0a", "GET /v1.51/events?filters=x",
		"GET /v1.51/containers/json?all=x", "GET /v1.51/info?x=%zz", "GET /v1.51/containers/mine/stats?stream=2",
	} {
		method, path, _ := strings.Cut(path, " ")
		r.refused(t, method, path, body(`{}`), "")
	}
}

// Strangers' containers, and what nobody here asks for, are refused.
func TestStrangers(t *testing.T) {
	r := newRig(t)
	r.learn("mine", id("a"), id("1"), ours())
	r.learn("vllm_1", id("b"), id("1"), nil)
	r.learn("database", id("c"), id("1"), map[string]string{moby.LabelInstance: "there"})
	r.learn("web", id("d"), id("1"), nil)
	before := r.count()
	for _, refused := range []string{
		"POST /containers/database/stop", "DELETE /containers/database", "GET /containers/database/json", "GET /containers/web/logs", "POST /containers/web/start", "GET /containers/web/stats",
		"POST /containers/database/update", "POST /containers/web/rename?name=web-before-roundhouse", "POST /containers/mine/rename?name=mine-before-roundhouse",
		"POST /containers/vllm_1/rename?name=database", "DELETE /containers/vllm_1", "POST /containers/vllm_1/start",
		"POST /containers/%6dine/stop", "POST //containers/create", "POST /containers/../containers/create", "POST /containers/mine/stop/../exec", "GET /containers/create",
	} {
		method, path, _ := strings.Cut(refused, " ")
		r.refused(t, method, "/v1.41"+path, `{"RestartPolicy":{"Name":"no"}}`, "")
	}
	for _, text := range []string{`{"RestartPolicy":{"Name":"always"}}`, `{"Memory":1}`, `{"Devices":[{"PathOnHost":"/dev/sda"}]}`, `{"RestartPolicy":{"Name":"no"},"reſtartPolicy":{"Name":"always"}}`, `{"PidsLimit":-1}`} {
		r.refused(t, "POST", "/v1.41/containers/mine/update", text, "")
	}
	for _, version := range []string{"/v1.4.1", "/v2.41", "/v1.400", "/v1.x"} {
		r.refused(t, "GET", version+"/info", "", "not on the list")
	}
	for _, req := range r.asked[before:] {
		if req.Method != http.MethodGet || strings.Contains(req.URL.Path, "v1.") {
			t.Errorf("the engine was asked %s %s", req.Method, req.URL)
		}
	}
}

// listed are the endpoints of Docker's API that are not refused at once.
var listed = []string{
	"GET /_ping", "HEAD /_ping", "GET /version", "GET /info", "GET /events", "GET /containers/json", "GET /images/{name}/json", "POST /images/create", "POST /containers/create",
	"GET /containers/{id}/json", "GET /containers/{id}/logs", "GET /containers/{id}/stats", "POST /containers/{id}/start", "POST /containers/{id}/stop",
	"POST /containers/{id}/update", "POST /containers/{id}/rename", "DELETE /containers/{id}",
}

// Every endpoint that Docker documents is refused but for those that this test lists:
// networks, volumes, exec, attach, archives, build, plugins, swarm and the rest.
func TestEveryEndpoint(t *testing.T) {
	r := newRig(t)
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/docker/docker").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "api/swagger.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Paths map[string]map[string]yaml.Node
	}
	if err := yaml.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	names, met := regexp.MustCompile(`\{[a-z]+\}`), 0
	for path, methods := range api.Paths {
		for method := range methods {
			met++
			endpoint := strings.ToUpper(method) + " " + path
			status, answer := r.send(t, strings.ToUpper(method), "/v1.51"+names.ReplaceAllString(path, "x"), "{}", nil)
			if off := status == http.StatusForbidden && strings.Contains(answer, "is not on the list"); off == slices.Contains(listed, endpoint) && method != "head" {
				t.Errorf("%s: %d %s", endpoint, status, answer)
			}
		}
	}
	if met < 100 {
		t.Errorf("only %d endpoints were looked at", met)
	}
}

// An engine that does not answer, or answers nonsense, is an error, and nothing passes.
func TestEngineAway(t *testing.T) {
	r := newRig(t)
	r.known["/containers/odd/json"] = `not JSON`
	r.refused(t, "POST", "/v1.51/containers/odd/stop", "", "the engine's answer")
	g := guardOf(t, "/nowhere")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/v1.51/containers/mine/stop", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.request(req); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Error(err)
	}
	long, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/v1.51/containers/create?name=old", io.LimitReader(neverending{}, maxBody+2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.request(long); err == nil || !strings.Contains(err.Error(), "a body of more than") {
		t.Error(err)
	}
}

type neverending struct{}

func (neverending) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
