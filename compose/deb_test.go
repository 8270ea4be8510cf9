//go:build deb

package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeb builds the package, unpacks it and looks at what a user gets. Run by
// `go test -tags deb ./compose`.
func TestDeb(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is missing: not Debian or Ubuntu")
	}
	out, root := t.TempDir(), t.TempDir()
	build := exec.Command("./deb")
	build.Env = append(os.Environ(), "OUT="+out, "VERSION=v1.2.3-4-gabc")
	text, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	file := filepath.Join(out, filepath.Base(strings.TrimSpace(string(text))))
	if !strings.Contains(file, "roundhouse_1.2.3+4+gabc_") {
		t.Errorf("the file is called %s", file)
	}
	dpkg := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("dpkg-deb", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("dpkg-deb %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	dpkg("--extract", file, root)
	for _, path := range []string{"usr/bin/roundhouse-worker", "usr/share/man/man1/roundhouse-rotate.1.gz", "lib/systemd/system/roundhouse.service",
		"usr/share/bash-completion/completions/roundhouse", "usr/share/doc/roundhouse/full.hcl"} {
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", path, err)
		}
	}
	version, err := exec.Command(filepath.Join(root, "usr/bin/roundhouse"), "version").CombinedOutput()
	if err != nil || !strings.Contains(string(version), "v1.2.3-4-gabc") {
		t.Errorf("version: %v %s", err, version)
	}
	if got := dpkg("--info", file, "conffiles"); strings.TrimSpace(got) != "/etc/roundhouse/roundhouse.hcl" {
		t.Errorf("conffiles: %s", got)
	}
	if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
		out, _ := exec.Command(analyze, "verify", filepath.Join(root, "lib/systemd/system/roundhouse.service")).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "roundhouse.service") && !strings.Contains(line, "is not executable") && !strings.Contains(line, "Command 'man") {
				t.Errorf("systemd-analyze: %s", line)
			}
		}
	}
}
