//go:build deb

package compose

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/test/patience"
	"roundhouse/test/ports"
)

// booted is a system of its own: this machine's files under an overlay, with systemd as
// the first process of namespaces that go with it. Of the distribution's own services
// none is started: they would set up the machine.
const booted = `set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
root=$1/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$root" || { echo NO OVERLAY; exit 0; }
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --make-rslave "$root/dev"
mount --rbind /sys "$root/sys"
mount --make-rslave "$root/sys"
mount -t tmpfs tmpfs "$root/run"
if [ "$(stat --file-system --format %T /sys/fs/cgroup)" = cgroup2fs ]; then
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
	mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
	mkdir "$root/sys/fs/cgroup/systemd"
	mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
fi
rm -rf "$root"/etc/systemd/system/*.wants "$root"/lib/systemd/system/*.wants
rm -rf "$root/var/lib/roundhouse" "$root/etc/roundhouse" # what runs on this machine is not this owner's
cp "$2" "$root/tmp/roundhouse.deb"
chroot "$root" dpkg --install /tmp/roundhouse.deb
sed -i "s/\":8000\"/\"127.0.0.1:$3\"/; s/127.0.0.1:8001/127.0.0.1:$4/" "$root/etc/roundhouse/roundhouse.hcl"
printf '%s' "$5" >"$root/tmp/owner"
touch "$root/tmp/printed"
mount --bind "$6" "$root/tmp/printed"
mkdir -p "$root/etc/systemd/system/roundhouse.service.d"
cat >"$root/etc/systemd/system/roundhouse.service.d/test.conf" <<'UNIT'
[Service]
StandardOutput=append:/tmp/printed
StandardError=inherit
# What ProtectSystem=strict is; some kernels leave what is mounted below the root as it was.
ReadOnlyPaths=/run
UNIT
cat >"$root/etc/systemd/system/owner.service" <<'UNIT'
[Unit]
SuccessAction=exit
FailureAction=exit
FailureActionExitStatus=1
[Service]
Type=oneshot
ExecStart=/bin/bash /tmp/owner
StandardOutput=append:/tmp/printed
StandardError=inherit
UNIT
mkdir "$root/before"
cd "$root"
pivot_root . before
umount --lazy /before
exec env -i container=other "PATH=$PATH" /lib/systemd/systemd --system --unit=owner.service --show-status=false --log-target=null
`

// owned is what an owner does with the unit: he starts it, reloads it, has it lose its
// supervisor, and stops it. Its waits end with the test's own patience; each step is told
// before it is done, so that a failure names it.
const owned = `set -ex
serves() { { set +x; } 2>/dev/null; until last=$(roundhouse ps --admin %ADMIN% 2>&1) && grep "chat  2/2" <<<"$last"; do [ "$last" = "$told" ] || echo "$last"; told=$last; sleep 0.1; done; set -x; }
systemctl start roundhouse
serves
echo STARTED
door=$(pgrep -f "roundhouse.* balance")
grep -q "^Uid:.60777" "/proc/$door/status" && echo "DOOR IS NOBODY"
workers=$(pgrep -d" " roundhouse-work)
roundhouse ps --admin %ADMIN%
systemctl reload roundhouse && echo RELOADED
old=$(systemctl show --property MainPID --value roundhouse)
kill -9 "$old"
until new=$(systemctl show --property MainPID --value roundhouse); [ "$new" != 0 ] && [ "$new" != "$old" ]; do sleep 0.1; done
serves
roundhouse ps --admin %ADMIN%
[ "$door" = "$(pgrep -f "roundhouse.* balance")" ] && [ "$workers" = "$(pgrep -d" " roundhouse-work)" ] && echo ADOPTED
touch "/proc/$door/root/tmp/of-the-door" "/proc/$new/root/tmp/of-the-supervisor" && echo "ROOM FOR PLUGINS"
for place in /usr /etc /boot /var/lib /run; do ! touch "/proc/$new/root$place/mine" 2>/dev/null || echo "OPEN $place"; done
systemctl restart roundhouse
serves
echo RESTARTED
systemctl stop roundhouse
[ -z "$(pgrep "^roundhouse")" ] && echo STOPPED
ls /run/roundhouse >/dev/null && echo DONE
`

// TestUnitStarted starts the package's unit by a systemd that is the first process of a
// system of its own.
func TestUnitStarted(t *testing.T) {
	for _, tool := range []string{"dpkg-deb", "unshare", "chroot", "/lib/systemd/systemd", "pgrep"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is missing: not Debian or Ubuntu, or without systemd or procps")
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("a system of its own takes root")
	}
	build := exec.Command("./deb")
	build.Env = append(quick(), "OUT="+t.TempDir(), "VERSION=v1.0.0")
	text, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	door, admin := strconv.Itoa(ports.Free(t)), strconv.Itoa(ports.Free(t))
	ctx, cancel := patience.Context(t.Context(), 5*time.Minute)
	defer cancel()
	printed := filepath.Join(t.TempDir(), "printed")
	if err := os.WriteFile(printed, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	script := strings.ReplaceAll(owned, "%ADMIN%", "127.0.0.1:"+admin)
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--cgroup", "--ipc", "--uts", "--fork", "--kill-child", "bash", "-c", booted, "booted",
		t.TempDir(), strings.TrimSpace(string(text)), door, admin, script, printed)
	group := controlGroup(t)
	cmd.SysProcAttr = &unix.SysProcAttr{UseCgroupFD: group.unified, CgroupFD: group.fd}
	if !group.unified {
		cmd.Args = append([]string{"bash", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group.path}, cmd.Args...)
		cmd.Path, err = exec.LookPath("bash")
		if err != nil {
			t.Fatal(err)
		}
	}
	first, err := cmd.CombinedOutput()
	last, _ := os.ReadFile(printed)
	out := string(first) + string(last)
	if strings.Contains(out, "NO OVERLAY") {
		t.Skip("this machine mounts no overlay: " + out)
	}
	for _, want := range []string{"STARTED", "DOOR IS NOBODY", "RELOADED", "ADOPTED", "ROOM FOR PLUGINS", "RESTARTED", "STOPPED", "DONE"} {
		if !strings.Contains("\n"+out, "\n"+want+"\n") { // the command that prints it is told as well
			t.Errorf("no %q in what was printed", want)
		}
	}
	if strings.Contains(out, "OPEN ") || err != nil || t.Failed() {
		t.Errorf("%v; it printed\n%s", err, out)
	}
}

// place is a control group that a systemd may have for its own.
type place struct {
	path    string
	unified bool // the machine has control groups of version 2 only
	fd      int
}

// controlGroup makes one, which goes with the test.
func controlGroup(t *testing.T) place {
	t.Helper()
	p := place{path: "/sys/fs/cgroup"}
	var fs unix.Statfs_t
	if err := unix.Statfs(p.path, &fs); err != nil {
		t.Skip("this machine has no control groups: " + err.Error())
	}
	if p.unified = fs.Type == unix.CGROUP2_SUPER_MAGIC; !p.unified {
		p.path += "/systemd"
	}
	p.path = filepath.Join(p.path, "roundhouse-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(p.path, 0o755); err != nil {
		t.Skip("this machine gives no control group: " + err.Error())
	}
	t.Cleanup(func() {
		var below []string
		_ = filepath.WalkDir(p.path, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				below = append(below, path)
			}
			return nil
		})
		limit := patience.For(time.Minute)
		for i := len(below) - 1; i >= 0; i-- {
			err := os.Remove(below[i])
			for errors.Is(err, unix.EBUSY) && !limit.Over() { // the kernel still lets the last process go
				runtime.Gosched()
				err = os.Remove(below[i])
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	if p.unified {
		dir, err := os.Open(p.path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dir.Close() })
		p.fd = int(dir.Fd())
	}
	return p
}
