//go:build docker

package compose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/test/patience"
	"roundhouse/test/ports"
)

// composition is compose.yaml under a name of the test's own.
type composition struct {
	t       *testing.T
	program []string
	env     []string
	name    string // of project, instance, network, pool and workers
	door    string
	config  string // its folder
	// of those that it starts; empty: all. What they depend on is started, too.
	services []string
}

// compositionFor makes one of compose.yaml and the shipped configuration.
func compositionFor(t *testing.T, files ...string) *composition {
	t.Helper()
	if out, err := exec.Command("docker", "version").CombinedOutput(); err != nil {
		t.Skipf("no Docker engine answers (Debian: docker.io): %s", out)
	}
	c := &composition{t: t, name: fmt.Sprintf("rhtest%d", os.Getpid()), door: ports.Address(t)}
	switch {
	case exec.Command("docker", "compose", "version").Run() == nil:
		c.program = []string{"docker", "compose"}
	case exec.Command("docker-compose", "version").Run() == nil:
		c.program = []string{"docker-compose"}
	default:
		t.Skip("compose is missing (Debian: docker-compose)")
	}
	c.program = append(c.program, "--project-name", c.name)
	for _, file := range append([]string{"compose.yaml"}, files...) {
		c.program = append(c.program, "--file", file)
	}
	dir := t.TempDir()
	c.config = dir
	c.configure("etc", `pool "chat"`, fmt.Sprintf("pool %q", c.name))
	for parent := dir; parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil { // its containers are not root
			t.Fatal(err)
		}
	}
	c.env = append(os.Environ(), "ROUNDHOUSE_CONFIG="+dir, "ROUNDHOUSE_INSTANCE="+c.name, "ROUNDHOUSE_NETWORK="+c.name, "ROUNDHOUSE_LISTEN="+c.door)
	if socket, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://"); ok {
		c.env = append(c.env, "DOCKER_SOCKET="+socket)
	}
	return c
}

var packed, packedXPU sync.Once

// packImages packs what most tests run, once.
func packImages(t *testing.T) {
	t.Helper()
	packed.Do(func() { run(t, ".", "./images", "roundhouse", "worker-cpu") })
}

// packXPU packs the image for Intel GPUs, once.
func packXPU(t *testing.T) {
	t.Helper()
	packedXPU.Do(func() { run(t, ".", "./images", "worker-xpu") })
}

// configure writes a shipped configuration with some words replaced by others.
func (c *composition) configure(folder string, replaced ...string) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "roundhouse.hcl"))
	if err != nil {
		c.t.Fatal(err)
	}
	config := string(text)
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(config, replaced[i]) {
			c.t.Fatalf("%s/roundhouse.hcl has no %q any more", folder, replaced[i])
		}
		config = strings.ReplaceAll(config, replaced[i], replaced[i+1])
	}
	config = strings.ReplaceAll(config, `["roundhouse"]`, fmt.Sprintf("[%q]", c.name))
	if err := os.WriteFile(filepath.Join(c.config, "roundhouse.hcl"), []byte(config), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// try runs compose with arguments.
func (c *composition) try(args ...string) (string, error) {
	args = append(append([]string(nil), c.program...), args...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = c.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *composition) run(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	if err != nil {
		logs, _ := c.try("logs")
		c.t.Fatalf("compose %s: %v\n%s\n%s", strings.Join(args, " "), err, out, logs)
	}
	return out
}

// roundhouse runs an operator command where an operator would.
func (c *composition) roundhouse(args ...string) string {
	c.t.Helper()
	return c.run(append([]string{"exec", "-T", "supervisor", "roundhouse"}, args...)...)
}

// clean takes everything away when the test has ended, however it did.
func (c *composition) clean() {
	c.t.Cleanup(func() {
		_, _ = c.try("down", "--volumes", "--timeout", "10") // done already where the test got so far
		for id := range strings.FieldsSeq(c.containers()) {
			_ = exec.Command("docker", "rm", "--force", "--volumes", id).Run()
		}
	})
}

// up starts it and waits until its workers serve, "2/2" of them.
func (c *composition) up(workers string) {
	c.t.Helper()
	c.clean()
	c.run(append([]string{"up", "--detach"}, c.services...)...)
	waitFor(c.t, func() error {
		out, err := c.try("exec", "-T", "supervisor", "roundhouse", "ps")
		if err != nil || !strings.Contains(out, c.name+"  "+workers) {
			logs, _ := c.try("logs")
			return fmt.Errorf("%w\n%s\n%s", err, out, logs)
		}
		return nil
	})
}

// containers are the identities of the workers' containers.
func (c *composition) containers() string {
	out, err := exec.Command("docker", "ps", "--all", "--quiet", "--no-trunc", "--filter", "label=roundhouse.instance="+c.name).CombinedOutput()
	if err != nil {
		c.t.Errorf("docker ps: %v %s", err, out)
	}
	return string(out)
}

// healthy waits until the images' own checks say so of n containers, the workers' too.
func (c *composition) healthy(n int) {
	c.t.Helper()
	waitFor(c.t, func() error {
		services, err := exec.Command("docker", "ps", "--filter", "health=healthy", "--filter", "name="+c.name, "--format", "{{.Names}} {{.Status}}").CombinedOutput()
		if err != nil || strings.Count(string(services), "\n") != n {
			return fmt.Errorf("%d containers should be healthy: %s %w", n, services, err)
		}
		return nil
	})
}

// TestCompose packs the images and lives through compose.yaml's life: up, a chat
// through the door, logs, the workers' containers rotated and the supervisor
// restarted while requests run, down. Run by `go test -tags docker ./compose`
// where a Docker engine answers.
func TestCompose(t *testing.T) {
	c := compositionFor(t)
	packImages(t)
	c.up("2/2")
	if err := requests(c.door); err != nil {
		t.Fatal(err)
	}
	c.healthy(5)

	before := c.containers()
	sent := underLoad(t, c.door, func() { c.roundhouse("rotate", c.name) })
	after := c.containers()
	for id := range strings.FieldsSeq(before) {
		if strings.Contains(after, id) {
			t.Errorf("container %s was there before the rotation and still is", id)
		}
	}
	if sent < 4 {
		t.Errorf("only %d requests during the rotation", sent)
	}
	t.Logf("%d requests while both containers were replaced, 0 lost", sent)

	sent = underLoad(t, c.door, func() {
		c.run("restart", "--timeout", "30", "supervisor")
		waitFor(t, func() error {
			out, err := c.try("exec", "-T", "supervisor", "roundhouse", "ps")
			if err == nil && !strings.Contains(out, c.name+"  2/2") {
				err = errors.New(out)
			}
			return err
		})
	})
	if now := c.containers(); now != after {
		t.Errorf("the supervisor's restart changed the workers' containers from\n%s to\n%s", after, now)
	}
	t.Logf("%d requests while the supervisor was restarted, 0 lost", sent)

	if out := c.run("logs", "door"); !strings.Contains(out, "/v1/chat/completions") {
		t.Errorf("the door's log has no requests:\n%s", out)
	}
	if out := c.roundhouse("logs", c.name+"/1"); !strings.Contains(out, "model loaded") {
		t.Errorf("the worker's log:\n%s", out)
	}

	c.down()
}

// down takes everything down and fails the test if anything is left.
func (c *composition) down() {
	c.t.Helper()
	c.run("down", "--volumes")
	if left := c.containers(); left != "" {
		c.t.Errorf("down leaves the workers %s", left)
	}
	for _, kind := range []string{"container", "network", "volume"} {
		list := []string{kind, "ls", "--quiet", "--filter", "name=" + c.name}
		if kind == "container" {
			list = append(list, "--all")
		}
		if left := run(c.t, ".", "docker", list...); left != "" {
			c.t.Errorf("down leaves the %s %s", kind, left)
		}
	}
}

// chat asks for an answer of the pool's model "model".
func (c *composition) chat() {
	c.t.Helper()
	body := `{"model":"model","temperature":0,"max_tokens":16,"messages":[{"role":"user","content":"What is 27 + 15?"}]}`
	res, err := http.Post("http://"+c.door+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if worker := res.Header.Get("X-Roundhouse-Worker"); err != nil || res.StatusCode != http.StatusOK || !strings.HasPrefix(worker, c.name+"/") || !strings.Contains(string(text), "42") {
		c.t.Errorf("status %d from %q: %s %v", res.StatusCode, worker, text, err)
	}
}

// TestComposeVLLM: the names, ports, environment, mounts and flags of llm-scaler's two
// engines, with our own worker under the vLLM image's name, since this machine
// can fetch neither that image nor a GPU.
func TestComposeVLLM(t *testing.T) {
	c := compositionFor(t, "compose.vllm.yaml")
	packImages(t)
	const image = "rhtest/llm-scaler-vllm:stand-in"
	run(t, ".", "docker", "tag", "roundhouse/worker-cpu:latest", image)
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", image).Run() })
	models := t.TempDir()
	c.configure("etc-vllm", `pool "model" {`, fmt.Sprintf("pool %q {\n  pull_policy = \"never\"\n  devices = \"cpu\"", c.name),
		"vllm_1", c.name+"_vllm_1", "vllm_2", c.name+"_vllm_2", "/home/intel/LLM/", models,
		`    model             = "/llm/models/DeepSeek-R1-Distill-Qwen-7B"`, "", `    gpus = ["0000:18:00.0"]`, "", `    gpus = ["0000:4b:00.0"]`, "",
		`max_model_len     = 32768`, `max_model_len     = 4096`)
	c.env = append(c.env, "VLLM_IMAGE="+image)
	c.up("2/2")
	c.chat()
	about := run(t, ".", "docker", "inspect", c.name+"_vllm_1")
	for _, want := range []string{`"Privileged": false`, `"ShmSize": 34359738368`, `"VLLM_WORKER_MULTIPROC_METHOD=spawn"`, `"` + models + `:/llm/models/"`, `"--port"`, `"8008"`, `"--no-enable-prefix-caching"`} {
		if !strings.Contains(about, want) {
			t.Errorf("the container has no %s", want)
		}
	}
	c.down()
}

// TestComposeFiles: every file is one that compose understands beside compose.yaml.
func TestComposeFiles(t *testing.T) {
	for _, file := range []string{"compose.monitoring.yaml", "compose.vllm.yaml", "compose.xpu.yaml"} {
		c := compositionFor(t, file)
		out := c.run("config")
		for _, service := range []string{"guard:", "supervisor:", "door:", "no-new-privileges"} {
			if !strings.Contains(out, service) {
				t.Errorf("%s: no %s in\n%s", file, service, out)
			}
		}
	}
}

// underLoad keeps requests running while it does something. Each must get a
// whole answer; it returns how many did.
func underLoad(t *testing.T, door string, do func()) int64 {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var sent atomic.Int64
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := requests(door); err != nil {
					t.Errorf("lost: %v", err)
					return
				}
				sent.Add(4)
			}
		})
	}
	do()
	stop()
	all.Wait()
	return sent.Load()
}

func waitFor(t *testing.T, ready func() error) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	err := errors.New("not asked yet")
	for limit := patience.For(6 * time.Minute); err != nil; err = ready() {
		if <-tick.C; limit.Over() {
			t.Fatalf("not ready within six minutes: %v", err)
		}
	}
}
