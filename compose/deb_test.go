//go:build deb

package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"roundhouse/test/ports"
)

// quick is an environment in which dpkg-deb packs within two seconds: as it packs for
// users it computes for half a minute.
func quick() []string {
	return append(os.Environ(), "DPKG_DEB_COMPRESSOR_TYPE=gzip", "DPKG_DEB_COMPRESSOR_LEVEL=1")
}

// TestDeb builds the package, unpacks it and looks at what a user gets. Run by
// `go test -tags deb ./compose`.
func TestDeb(t *testing.T) {
	for _, tool := range []string{"dpkg-deb", "systemd-analyze"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is missing: not Debian or Ubuntu, or without systemd")
		}
	}
	out, root := t.TempDir(), t.TempDir()
	build := exec.Command("./deb")
	build.Env = append(quick(), "OUT="+out, "VERSION=v1.2.3-4-gabc")
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
	// Here the programs are not where the unit has them; TestDebInstalled verifies it whole.
	verified, _ := exec.Command("systemd-analyze", "verify", filepath.Join(root, "lib/systemd/system/roundhouse.service")).CombinedOutput()
	for line := range strings.Lines(string(verified)) {
		if strings.Contains(line, "roundhouse.service") && !strings.Contains(line, "is not executable") && !strings.Contains(line, "Command 'man") {
			t.Errorf("systemd-analyze: %s", line)
		}
	}
}

// installed is what an owner does with the package: it installs, looks, starts what
// the unit starts, upgrades over a changed configuration, removes and purges.
const installed = `set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root" || { echo NO OVERLAY; exit 0; }
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount --rbind /sys "$1/root/sys"
rm -rf "$1/root/var/lib/roundhouse" "$1/root/etc/roundhouse" # what runs on this machine is not this owner's
cp "$2" "$1/root/tmp/first.deb"
cp "$3" "$1/root/tmp/second.deb"
exec chroot "$1/root" sh -e -c '
export DEBIAN_FRONTEND=noninteractive
dpkg --path-include="/usr/share/*" --install /tmp/first.deb # small images leave man pages out
roundhouse version
roundhouse validate /etc/roundhouse/roundhouse.hcl
systemd-analyze verify roundhouse.service && echo UNIT VERIFIED
grep -q "^ExecStart=/usr/bin/roundhouse up -c /etc/roundhouse/roundhouse.hcl$" /lib/systemd/system/roundhouse.service
man --where roundhouse roundhouse-rotate
bash -c ". /usr/share/bash-completion/completions/roundhouse && complete -p roundhouse"
roundhouse __complete ro
roundhouse up -c /etc/roundhouse/roundhouse.hcl --listen 127.0.0.1:'"$4"' --admin 127.0.0.1:'"$5"' --state-dir /var/lib/roundhouse/fresh &
for i in $(seq 3000); do roundhouse ps --admin 127.0.0.1:'"$5"' 2>/dev/null | grep "chat  2/2" && break; sleep 0.1; done
kill $!
wait $!
echo "# mine" >>/etc/roundhouse/roundhouse.hcl
dpkg --path-include="/usr/share/*" --install /tmp/second.deb # small images leave man pages out
roundhouse version
tail -1 /etc/roundhouse/roundhouse.hcl
dpkg --remove roundhouse
test -e /etc/roundhouse/roundhouse.hcl
dpkg --purge roundhouse
for path in /etc/roundhouse/roundhouse.hcl /var/lib/roundhouse /usr/bin/roundhouse /lib/systemd/system/roundhouse.service; do test ! -e $path || echo LEFT $path; done
echo PURGED
'`

// TestDebInstalled installs the package on this machine's own system, under an
// overlay that goes with the test.
func TestDebInstalled(t *testing.T) {
	for _, tool := range []string{"dpkg-deb", "unshare", "chroot", "systemd-analyze", "man"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is missing: not Debian or Ubuntu, or without systemd or man-db")
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("installing takes root")
	}
	var files []string
	for _, version := range []string{"v1.0.0", "v1.1.0"} {
		build := exec.Command("./deb")
		build.Env = append(quick(), "OUT="+t.TempDir(), "VERSION="+version)
		out, err := build.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		files = append(files, strings.TrimSpace(string(out)))
	}
	door, admin := strconv.Itoa(ports.Free(t)), strconv.Itoa(ports.Free(t))
	text, err := exec.Command("unshare", "--mount", "bash", "-c", installed, "installed", t.TempDir(), files[0], files[1], door, admin).CombinedOutput()
	out := string(text)
	if strings.Contains(out, "NO OVERLAY") {
		t.Skip("this machine mounts no overlay: " + out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := []string{"roundhouse v1.0.0", "complete -o default -F __start_roundhouse roundhouse", "rotate\t", "chat  2/2", "roundhouse v1.1.0", "# mine", "PURGED",
		"UNIT VERIFIED", "roundhouse-rotate.1.gz"}
	for _, text := range want {
		if !strings.Contains(out, text) {
			t.Errorf("no %q in what was printed", text)
		}
	}
	if strings.Contains(out, "LEFT ") || t.Failed() {
		t.Errorf("it printed\n%s", out)
	}
}
