package launch

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"roundhouse/worker/device"
)

// numa is the sysfs of two nodes of two CPUs, with a GPU at the second.
func numa(t *testing.T) string {
	root := t.TempDir()
	for name, text := range map[string]string{
		"devices/system/cpu/online":         "0-3",
		"devices/system/node/node0/cpulist": "0-1", "devices/system/node/node0/meminfo": "Node 0 MemTotal: 1000 kB",
		"devices/system/node/node1/cpulist": "2-3", "devices/system/node/node1/meminfo": "Node 1 MemTotal: 1000 kB",
		"bus/pci/devices/0000:98:00.0/vendor": "0x8086", "bus/pci/devices/0000:98:00.0/class": "0x030000",
		"bus/pci/devices/0000:98:00.0/numa_node": "1", "bus/pci/devices/0000:98:00.0/local_cpulist": "2-3",
		"bus/pci/devices/0000:98:00.0/drm/renderD128/dev": "226:128",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../../bus/pci/drivers/xe", filepath.Join(root, "bus/pci/devices/0000:98:00.0/driver")); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestWanted(t *testing.T) {
	root := numa(t)
	f := func(o Options, allowed []int, want device.Binding, mode int) {
		t.Helper()
		if got, m := wanted(&o, root, allowed); !reflect.DeepEqual(got, want) || m != mode {
			t.Errorf("%+v: got %+v, policy %d; want %+v, policy %d", o, got, m, want, mode)
		}
	}
	all := []int{0, 1, 2, 3}
	f(Options{Machine: Machine{Device: "xpu"}}, all, device.Binding{CPUs: []int{2, 3}, Nodes: []int{1}}, policyPreferred)
	f(Options{Machine: Machine{Device: "xpu:98:00.0"}}, []int{2, 3}, device.Binding{Nodes: []int{1}}, policyPreferred)
	f(Options{Machine: Machine{Device: "xpu", CPUs: "0-1", Mems: "0"}}, all, device.Binding{CPUs: []int{0, 1}, Nodes: []int{0}}, policyBind)
	f(Options{Machine: Machine{Device: "xpu", CPUs: "2-3"}}, []int{2, 3}, device.Binding{Nodes: []int{1}}, policyPreferred)
	f(Options{Machine: Machine{Device: "xpu:cpu"}}, all, device.Binding{}, policyPreferred)
	f(Options{Machine: Machine{Device: "cpu", CPUs: "0-1"}}, all, device.Binding{}, policyPreferred) // its threads are placed by themselves
	f(Options{Machine: Machine{Device: "cpu", Mems: "1"}}, all, device.Binding{Nodes: []int{1}}, policyBind)
}

// What is set on a thread is what is read back.
func TestPolicyOfThisThread(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		cpus := affinity()
		if len(cpus) == 0 {
			t.Error("no CPU to run on")
			return
		}
		if err := setAffinity(cpus[:1]); err != nil || !reflect.DeepEqual(affinity(), cpus[:1]) {
			t.Errorf("on %v: %v", affinity(), err)
		}
		if memoryPolicy() != policyDefault {
			return // settled from outside
		}
		if err := setMemoryPolicy(policyPreferred, []int{0}); err != nil {
			t.Logf("this kernel or container sets no memory policy: %v", err)
		} else if got := memoryPolicy(); got != policyPreferred {
			t.Errorf("the policy is %d", got)
		}
	}()
	<-done
}
