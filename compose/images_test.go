//go:build docker

package compose

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// TestImages packs all of our images, with no registry, and looks at what an operator
// is promised of each: no root, a check of its health, what it is made of.
func TestImages(t *testing.T) {
	if out, err := exec.Command("docker", "version").CombinedOutput(); err != nil {
		t.Skipf("no Docker engine answers (Debian: docker.io): %s", out)
	}
	packImages(t)
	packXPU(t)
	f := func(image, module string) {
		t.Helper()
		var about []struct {
			Config struct {
				User        string
				Labels      map[string]string
				Healthcheck *struct{ Test []string }
			}
		}
		if err := json.Unmarshal([]byte(run(t, ".", "docker", "inspect", image)), &about); err != nil {
			t.Fatal(err)
		}
		is := about[0].Config
		if is.User != "65532:65532" || is.Healthcheck == nil || is.Healthcheck.Test[0] != "CMD" {
			t.Errorf("%s: user %q, health %+v", image, is.User, is.Healthcheck)
		}
		for _, label := range []string{"org.opencontainers.image.version", "org.opencontainers.image.revision", "org.opencontainers.image.licenses", "io.roundhouse.sbom"} {
			if v := is.Labels[label]; v == "" || v == "unknown" {
				t.Errorf("%s: the label %s is %q", image, label, v)
			}
		}
		id := strings.TrimSpace(run(t, ".", "docker", "create", image))
		defer func() { _ = exec.Command("docker", "rm", id).Run() }()
		dir := t.TempDir()
		run(t, dir, "docker", "cp", id+":"+is.Labels["io.roundhouse.sbom"], "sbom.txt")
		if sbom := run(t, dir, "cat", "sbom.txt"); !strings.Contains(sbom, module) {
			t.Errorf("%s: no %q in what it is made of:\n%s", image, module, sbom)
		}
	}
	f("roundhouse/roundhouse:latest", "github.com/valyala/fasthttp")
	f("roundhouse/worker-cpu:latest", "path\troundhouse/cmd/roundhouse-worker")
	f("roundhouse/worker-xpu:latest", "intel-opencl-icd\t")
}
