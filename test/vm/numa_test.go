//go:build vm

package vm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"roundhouse/worker/device"
)

// The machine: two processors on each of three memory nodes, and a fourth node with
// memory alone; the plan of three workers, with a core left for the door.
var (
	nodes = map[int][]int{0: {0, 1}, 1: {2, 3}, 2: {4, 5}, 3: {}}
	plan  = []struct{ cpus, node string }{{"1", "0"}, {"2-3", "1"}, {"4-5", "2"}}
)

// Nodes, cores and GPUs are read as they are.
func TestDiscovery(t *testing.T) {
	m := device.Read("/sys", []int{0, 1, 2, 3, 4, 5})
	if len(m.Nodes) != len(nodes) {
		t.Errorf("nodes: %+v", m.Nodes)
	}
	for _, n := range m.Nodes {
		if !slices.Equal(n.CPUs, nodes[n.ID]) || n.MemoryBytes < 100<<20 {
			t.Errorf("node %+v; want the processors %v and memory", n, nodes[n.ID])
		}
	}
	if len(m.Cores) != 6 {
		t.Errorf("cores: %+v", m.Cores)
	}
	for i, g := range m.GPUs {
		node, err := os.Stat(g.Render)
		if err != nil || node.Mode()&os.ModeCharDevice == 0 || g.Node != i+1 || g.Driver != "virtio-pci" && g.Driver != "virtio_gpu" {
			t.Errorf("GPU %+v: %v", g, err)
		}
		t.Logf("GPU %+v", g)
	}
	if len(m.GPUs) != 2 {
		t.Errorf("%d GPUs; want 2", len(m.GPUs))
	}
}

// Doctor prints the plan; worker processes run on its processors, and every page that
// they touched is on its memory node.
func TestWorkersOnTheirNodes(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.hcl")
	text := fmt.Sprintf("state_dir = %q\ndoor {\n  listen = \"127.0.0.1:8000\"\n}\nadmin {\n  listen = \"127.0.0.1:8001\"\n}\npool \"chat\" {\n  driver = \"process\"\n  devices = \"cpu\"\n  workers = 3\n  rotation {\n    ready_timeout = \"5m\"\n  }\n}\n", filepath.Join(dir, "state"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := exec.Command("/share/bin/roundhouse", "doctor", "-c", config).CombinedOutput() // its status is of much else as well
	t.Logf("doctor:\n%s", out)
	for i, p := range plan {
		if want := fmt.Sprintf("plan: chat/%d: CPUs %s, memory of node %s", i+1, p.cpus, p.node); !bytes.Contains(out, []byte(want)) {
			t.Errorf("doctor does not say %q", want)
		}
	}
	up := exec.Command("/share/bin/roundhouse", "up", "-c", config)
	up.Stdout, up.Stderr = t.Output(), t.Output()
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = up.Process.Signal(syscall.SIGTERM)
		if err := up.Wait(); err != nil {
			t.Error(err)
		}
	}()
	type worker struct {
		State string
		Place struct {
			PID  int
			NUMA []int
			CPUs string
		}
	}
	var seen struct{ Workers []worker }
	for late := time.Now().Add(6 * time.Minute); ; {
		if res, err := http.Get("http://127.0.0.1:8001/api/workers"); err == nil {
			seen.Workers = nil
			_ = json.NewDecoder(res.Body).Decode(&seen)
			res.Body.Close()
		}
		if len(seen.Workers) == 3 && !slices.ContainsFunc(seen.Workers, func(w worker) bool { return w.State != "ready" }) {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("not ready: %+v", seen)
		}
		<-time.After(200 * time.Millisecond)
	}
	for i, w := range seen.Workers {
		if w.Place.CPUs != plan[i].cpus || device.FormatList(w.Place.NUMA) != plan[i].node {
			t.Errorf("worker %d is said to be on %+v", i+1, w.Place)
		}
		held(t, i, w.Place.PID)
	}
}

var pages = regexp.MustCompile(`\bN(\d+)=(\d+)`)

// held looks at what the kernel has done with a worker.
func held(t *testing.T, i, pid int) {
	t.Helper()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	allowed, err := device.ParseList(plan[i].cpus)
	if err != nil || len(tasks) == 0 {
		t.Fatal(err, tasks)
	}
	for _, path := range tasks {
		status, _ := os.ReadFile(path)
		_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:")
		list, _, _ = strings.Cut(list, "\n")
		cpus, err := device.ParseList(strings.TrimSpace(list))
		if err != nil || slices.ContainsFunc(cpus, func(c int) bool { return !slices.Contains(allowed, c) }) {
			t.Errorf("a thread of worker %d runs on %v; its processors are %s", i+1, cpus, plan[i].cpus)
		}
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/numa_maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	near, far := 0, 0
	for line := range strings.Lines(string(maps)) {
		if !strings.Contains(line, " anon=") || strings.Contains(line, " file=") {
			continue
		}
		if !strings.Contains(line, " bind:"+plan[i].node+" ") {
			t.Errorf("worker %d: a policy other than bind:%s: %s", i+1, plan[i].node, line)
		}
		for _, m := range pages.FindAllStringSubmatch(line, -1) {
			n := 0
			fmt.Sscan(m[2], &n)
			if m[1] == plan[i].node {
				near += n
			} else {
				far += n
			}
		}
	}
	t.Logf("worker %d: %d pages of its own on node %s, %d elsewhere", i+1, near, plan[i].node, far)
	if near == 0 || far > 0 {
		t.Errorf("worker %d: %d pages near, %d far", i+1, near, far)
	}
}
