//go:build docker

package compose

import (
	"os/exec"
	"strings"
	"testing"
)

// remade is what the tests do to an engine that is somebody's: a name of an image is
// given to another, which loses it again, and a new one is made.
const remade = `set -e
make() { printf '\0%.0s' $(seq 1024) | docker import --change 'LABEL org.opencontainers.image.title=Roundhouse' --message "$2" - "$1" >/dev/null; }
make roundhouse/test-restored:1 a
make roundhouse/test-restored:1 b
make roundhouse/test-restored:2 c
exit 3
`

// An engine that answers has the images afterwards that it had before, under the names
// that they had, and a command's status is kept.
func TestRestored(t *testing.T) {
	if out, err := exec.Command("docker", "version").CombinedOutput(); err != nil {
		t.Skipf("no Docker engine answers (Debian: docker.io): %s", out)
	}
	docker := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("docker", args...).Output()
		if err != nil {
			t.Fatalf("docker %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	load := exec.Command("docker", "import", "-", "roundhouse/test-restored:1")
	load.Stdin = strings.NewReader(strings.Repeat("\x00", 1024)) // an empty tar archive
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { docker("rmi", "roundhouse/test-restored:1") })
	list := func() string {
		return docker("image", "ls", "--no-trunc", "--format", "{{.ID}} {{.Tag}}", "--filter", "reference=roundhouse/test-restored") +
			docker("image", "ls", "--no-trunc", "--quiet", "--filter", "dangling=true", "--filter", "label=org.opencontainers.image.title=Roundhouse")
	}
	before := list()
	out, err := exec.Command("../test/with-docker", "bash", "-c", remade).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 3 {
		t.Errorf("%v\n%s", err, out)
	}
	if after := list(); after != before {
		t.Errorf("before\n%safter\n%s%s", before, after, out)
	}
}
