//go:build !race

package cpu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// quick is the part of the tests that shows what a processor could do
// otherwise, and takes an emulator seconds.
const quick = "^(TestLevels|TestOptions|TestCache.*|TestFMA)$/^go$/^(Linear|LinearParts|Stored|BlockScales|Norm|Activate|Embed|RoPE|Pool|MoE|Delta|Sample|Draws|Errors)$"

// The tests pass on arm64, which qemu plays where it is installed, and without
// assembly.
func TestElsewhere(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("this is elsewhere")
	}
	build := func(t *testing.T, tags string, env ...string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "test")
		c := exec.Command("go", "test", "-c", "-tags", tags, "-o", path, ".")
		c.Env = append(os.Environ(), append(env, "CGO_ENABLED=0")...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return path
	}
	run := func(t *testing.T, command ...string) {
		t.Helper()
		out, err := exec.Command(command[0], append(command[1:], "-test.v", "-test.run", quick)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		for _, name := range []string{"TestLevels/go/Linear/sym_int4", "TestLevels/go/MoE", "TestLevels/go/Sample"} {
			if !strings.Contains(string(out), "--- PASS: "+name) {
				t.Errorf("%s did not run:\n%s", name, out)
			}
		}
	}
	t.Run("purego", func(t *testing.T) { run(t, build(t, "purego")) })
	t.Run("arm64", func(t *testing.T) {
		qemu, err := exec.LookPath("qemu-aarch64-static")
		if err != nil {
			build(t, "", "GOARCH=arm64")
			t.Skip("built, but not run: there is no qemu-aarch64-static (package qemu-user-static)")
		}
		run(t, qemu, build(t, "", "GOARCH=arm64"))
	})
}
