//go:build docker

package guard

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/configs"
	"roundhouse/supervisor/moby"
)

// TestEngine: Docker's own client creates and removes a container through the
// guard, on a real engine, and cannot create one with privileges.
func TestEngine(t *testing.T) {
	engine := strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if engine == "" {
		engine = "/var/run/docker.sock"
	}
	if out, err := exec.Command("docker", "version").CombinedOutput(); err != nil {
		t.Skipf("no Docker engine answers (Debian: docker.io): %s", out)
	}
	dir := t.TempDir()
	load := exec.Command("docker", "import", "-", "roundhouse-guard-test:1")
	load.Stdin = strings.NewReader(strings.Repeat("\x00", 1024)) // an empty tar archive
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", "roundhouse-guard-test:1").Run() })
	cfg, err := configs.Parse("c.hcl", []byte("pool \"a\" {\n  driver = \"docker\"\n  image = \"roundhouse-guard-test:1\"\n  network_mode = \"host\"\n  shm_size = \"64MiB\"\n}\n"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "guard.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	p := PolicyOf(cfg, "guard-test")
	g := New(engine, func() *Policy { return p }, slog.New(slog.NewTextHandler(io.Discard, nil)))
	server := &http.Server{Handler: g}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	defer func() {
		server.Close()
		<-ended
		g.Close()
	}()
	docker := func(args ...string) (string, error) {
		out, err := exec.Command("docker", append([]string{"--host", "unix://" + socket}, args...)...).CombinedOutput()
		return string(out), err
	}
	create := []string{
		"create", "--name", "roundhouse-a-1", "--label", moby.LabelInstance + "=guard-test", "--label", moby.LabelPool + "=a", "--label", moby.LabelWorker + "=a/1",
		"--network", "host", "--shm-size", "64m",
	}
	if out, err := docker(append(create, "roundhouse-guard-test:1", "/nothing")...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := docker("rm", "--force", "roundhouse-a-1"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, flag := range []string{"--privileged", "--pid=host", "--volume=/:/host", "--cap-add=SYS_ADMIN", "--device=/dev/kmsg", "--security-opt=seccomp=unconfined",
		"--security-opt=systempaths=unconfined", "--log-driver=syslog", "--gpus=all", "--label=ofelia.enabled=true", "--publish=8000:8000", "--restart=always"} {
		if out, err := docker(append(append(create, flag), "roundhouse-guard-test:1", "/nothing")...); err == nil || !strings.Contains(out, "docker-guard") {
			t.Errorf("%s: %v %s", flag, err, out)
			_, _ = docker("rm", "--force", "roundhouse-a-1")
		}
	}
}
