package supervisor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/configs"
	"roundhouse/supervisor"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/process"
	"roundhouse/worker/device"
)

// From the files of a machine of two processors with a GPU beside each to the command
// lines of its workers: each gets its own GPU, and the processor and memory beside it.
func TestEachWorkerItsGPU(t *testing.T) {
	sysfs := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(sysfs, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("devices/system/cpu/online", "0-7")
	for c := range 8 {
		write(fmt.Sprintf("devices/system/cpu/cpu%d/topology/thread_siblings_list", c), fmt.Sprint(c))
	}
	for n, pci := range []string{"0000:18:00.0", "0000:98:00.0"} {
		node := fmt.Sprintf("devices/system/node/node%d/", n)
		write(node+"cpulist", fmt.Sprintf("%d-%d", 4*n, 4*n+3))
		write(node+"meminfo", fmt.Sprintf("Node %d MemTotal:       65536 kB", n))
		gpu := "bus/pci/devices/" + pci + "/"
		write(gpu+"class", "0x030000")
		write(gpu+"vendor", "0x8086")
		write(gpu+"numa_node", fmt.Sprint(n))
		write(fmt.Sprintf("%sdrm/renderD%d/dev", gpu, 128+n), "226:128")
		if err := os.Symlink("../../../../bus/pci/drivers/xe", filepath.Join(sysfs, gpu, "driver")); err != nil {
			t.Fatal(err)
		}
	}
	cfg := &configs.Config{Pools: []configs.Pool{{Name: "chat", Driver: "process", Devices: "auto", GPUsPerWorker: 1,
		Workers: []configs.Worker{{Name: "1", GPUs: []string{"0000:98:00.0"}}, {Name: "2"}}}}}
	places := supervisor.Places(cfg, device.Read(sysfs, []int{0, 1, 2, 3, 4, 5, 6, 7}))
	for worker, want := range map[string]string{
		"1": "--device xpu:0000:98:00.0 --cpus 4-7 --mems 1",
		"2": "--device xpu:0000:18:00.0 --cpus 1-3 --mems 0", // the first core is for the door
	} {
		spec := driver.Spec{Pool: "chat", Name: worker, Place: places["chat/"+worker]}
		if got := strings.Join(process.Arguments(spec, 9), " "); got != "serve --host 127.0.0.1 --port 9 "+want {
			t.Errorf("worker %s: %s; want … %s", worker, got, want)
		}
	}
}
