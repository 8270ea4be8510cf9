package device

import (
	"os"
	"path/filepath"
	"testing"
)

// The least limit of the process's groups counts, in either version.
func TestQuota(t *testing.T) {
	f := func(groups string, files map[string]string, want float64) {
		t.Helper()
		root := t.TempDir()
		files["proc/self/cgroup"] = groups
		for name, text := range files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := Quota(filepath.Join(root, "proc"), filepath.Join(root, "sys")); got != want {
			t.Errorf("%q, %q: %v processors; want %v", groups, files, got, want)
		}
	}
	const v2, v1 = "sys/fs/cgroup/", "sys/fs/cgroup/cpu,cpuacct/"
	f("", map[string]string{}, 0)
	f("0::/\n", map[string]string{v2 + "cpu.max": "max 100000\n"}, 0)
	f("0::/\n", map[string]string{v2 + "cpu.max": "150000 100000\n"}, 1.5)
	f("0::/a/b\n", map[string]string{v2 + "a/b/cpu.max": "400000 100000", v2 + "a/cpu.max": "200000 100000"}, 2)
	f("0::/../outside\n", map[string]string{v2 + "cpu.max": "100000 50000"}, 2)
	f("0::/x\n", map[string]string{v2 + "cpu.max": "nonsense"}, 0)
	f("3:cpu,cpuacct:/d\n1:name=systemd:/d\n", map[string]string{v1 + "d/cpu.cfs_quota_us": "300000", v1 + "d/cpu.cfs_period_us": "100000"}, 3)
	f("3:cpu,cpuacct:/d\n", map[string]string{v1 + "d/cpu.cfs_quota_us": "-1", v1 + "d/cpu.cfs_period_us": "100000"}, 0)
	f("3:cpuset:/d\n", map[string]string{"sys/fs/cgroup/cpuset/d/cpu.cfs_quota_us": "100000", "sys/fs/cgroup/cpuset/d/cpu.cfs_period_us": "100000"}, 0)
}

func TestThreads(t *testing.T) {
	f := func(processors int, quota float64, want int) {
		t.Helper()
		if got := Threads(processors, quota); got != want {
			t.Errorf("%d processors with a quota of %v: %d threads; want %d", processors, quota, got, want)
		}
	}
	f(8, 0, 8)
	f(8, 2.5, 2)
	f(8, 0.5, 1)
	f(2, 16, 2)
	f(0, 0, 1)
}
