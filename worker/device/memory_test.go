package device

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The least of what the machine could give and what a group of the process leaves
// counts, in either version, and a group's pages of files count as free.
func TestMemory(t *testing.T) {
	f := func(groups string, files map[string]string, want int64, limit string) {
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
		got := Memory(filepath.Join(root, "proc"), filepath.Join(root, "sys"))
		if got.Bytes != want || !strings.HasSuffix(got.Limit, limit) || (limit == "") != (got.Limit == "") {
			t.Errorf("%q, %q: %+v; want %d bytes by %q", groups, files, got, want, limit)
		}
	}
	const v2, v1, info = "sys/fs/cgroup/", "sys/fs/cgroup/memory/", "MemTotal:  9 kB\nMemAvailable:   1000 kB\n"
	machine := map[string]string{"proc/meminfo": info}
	with := func(more map[string]string) map[string]string {
		more["proc/meminfo"] = machine["proc/meminfo"]
		return more
	}
	f("", map[string]string{}, 0, "")
	f("0::/\n", with(map[string]string{}), 1000<<10, "MemAvailable of the machine")
	f("0::/a\n", with(map[string]string{v2 + "a/memory.max": "max\n", v2 + "a/memory.current": "7\n"}), 1000<<10, "machine")
	f("0::/a\n", with(map[string]string{v2 + "a/memory.max": "90000\n", v2 + "a/memory.current": "20000\n"}), 70000, "a")
	f("0::/a/b\n", with(map[string]string{v2 + "a/b/memory.max": "90000", v2 + "a/b/memory.current": "1000", v2 + "a/memory.max": "80000", v2 + "a/memory.current": "30000"}), 50000, "/a")
	f("0::/../outside\n", with(map[string]string{v2 + "memory.max": "90000", v2 + "memory.current": "20000"}), 70000, "cgroup")
	f("0::/a\n", with(map[string]string{v2 + "a/memory.max": "90000", v2 + "a/memory.current": "85000", v2 + "a/memory.stat": "anon 5000\ninactive_file 60000\nactive_file 20000\n"}), 85000, "a")
	f("0::/a\n", with(map[string]string{v2 + "a/memory.max": "90000", v2 + "a/memory.current": "95000"}), 1, "a") // full, which is not unknown
	f("0::/a\n", with(map[string]string{v2 + "a/memory.max": "nonsense", v2 + "a/memory.current": "0"}), 1000<<10, "machine")
	f("4:cpu:/d\n3:memory:/d\n", with(map[string]string{v1 + "d/memory.limit_in_bytes": "90000", v1 + "d/memory.usage_in_bytes": "50000", v1 + "d/memory.stat": "inactive_file 1\ntotal_inactive_file 10000\n"}), 50000, "d")
	f("3:memory:/d\n", with(map[string]string{v1 + "d/memory.limit_in_bytes": "9223372036854771712", v1 + "d/memory.usage_in_bytes": "50000"}), 1000<<10, "machine")
	f("4:cpu:/d\n", with(map[string]string{v1 + "d/memory.limit_in_bytes": "90000"}), 1000<<10, "machine")
}
