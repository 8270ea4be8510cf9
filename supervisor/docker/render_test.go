package docker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/driver/drivertest"
	"roundhouse/worker/device"
)

// twoGPUs makes the nodes of two GPUs under a folder that stands for /dev/dri, and a
// tree that stands for /sys, and returns the machine that is read from it.
func twoGPUs(t *testing.T, nodes string) device.Machine {
	t.Helper()
	sysfs := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(sysfs, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(nodes, "by-path"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("devices/system/cpu/online", "0-1")
	write("devices/system/node/node0/cpulist", "0-1")
	write("devices/system/node/node0/meminfo", "Node 0 MemTotal: 1000000 kB")
	for i, pci := range []string{"0000:18:00.0", "0000:4b:00.0"} {
		dir := "bus/pci/devices/" + pci + "/"
		write(dir+"class", "0x038000")
		write(dir+"vendor", "0x8086")
		write(dir+"numa_node", "0")
		write(dir+"local_cpulist", "0-1")
		if err := os.Symlink("../../../../bus/pci/drivers/xe", filepath.Join(sysfs, dir, "driver")); err != nil {
			t.Fatal(err)
		}
		for kind, n := range map[string]int{"card": i, "renderD": 128 + i} {
			name := fmt.Sprint(kind, n)
			write(dir+"drm/"+name+"/dev", fmt.Sprint("226:", n))
			if err := unix.Mknod(filepath.Join(nodes, name), unix.S_IFCHR|0o660, int(unix.Mkdev(226, uint32(n)))); err != nil {
				t.Skipf("no device nodes can be made here: %v", err)
			}
			if err := os.Chown(filepath.Join(nodes, name), 0, 4242+i); err != nil {
				t.Fatal(err)
			}
			if *rootless {
				if err := os.Chmod(filepath.Join(nodes, name), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			link := "pci-" + pci + "-" + strings.TrimSuffix(kind, "D")
			if err := os.Symlink("../"+name, filepath.Join(nodes, "by-path", link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return device.Read(sysfs, []int{0, 1})
}

// Two workers of a machine with two GPUs, as real containers: each finds one render
// node, its card and their names by path, may open them, is in the group that they
// belong to, and runs on the CPUs and the memory of its plan; the other's is not there.
// Containers of a rootless engine are in no group of this machine's: they may open what
// is open to the engine's user.
func TestRenderNodes(t *testing.T) {
	_, d := driverFor(t)
	dir := t.TempDir()
	open(t, dir)
	nodes := filepath.Join(dir, "dri")
	m := twoGPUs(t, nodes)
	plan, err := m.Plan([]device.Need{{ID: "pool/1", Count: 1}, {ID: "pool/2", Count: 1}})
	if err != nil {
		t.Fatal(err)
	}
	d.nodes = nodes
	for i, name := range []string{"1", "2"} {
		spec := specFor(name, 1)
		place := plan["pool/"+name]
		spec.Place = driver.Place{CPUs: device.FormatList(place.CPUs), NUMA: []int{0}}
		for _, g := range place.GPUs {
			spec.Place.GPUs = append(spec.Place.GPUs, driver.GPU{
				ID: g.PCI, Vendor: g.Vendor, Render: filepath.Join(nodes, filepath.Base(g.Render)), Card: filepath.Join(nodes, filepath.Base(g.Card)),
			})
		}
		if err := d.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		list, err := d.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(list, func(i driver.Instance) bool { return i.ID == "pool/"+name })
		drivertest.Until(t, "it answers", func() bool { return healthy(list[at].URL) })
		res, err := http.Get(list[at].URL + "/inside?dir=" + url.QueryEscape(nodes))
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Files      []string
			Groups     []int
			CPUs, Mems string
		}
		err = json.NewDecoder(res.Body).Decode(&v)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		pci := m.GPUs[i].PCI
		want := []string{"by-path/pci-" + pci + "-card", "by-path/pci-" + pci + "-render", fmt.Sprint("card", i), fmt.Sprint("renderD", 128+i)}
		for k := range want {
			want[k] = filepath.Join(nodes, want[k])
		}
		if !slices.Equal(v.Files, want) {
			t.Errorf("worker %s sees %q; want %q", name, v.Files, want)
		}
		if slices.Contains(v.Groups, 4242+i) == *rootless || slices.Contains(v.Groups, 4242+1-i) {
			t.Errorf("worker %s is in the groups %v; want %d", name, v.Groups, 4242+i)
		}
		if !d.can().Confines {
			t.Logf("worker %s runs on the CPUs %q: this engine has no control groups", name, v.CPUs)
		} else if v.CPUs != device.FormatList(place.CPUs) || v.Mems != "0" {
			t.Errorf("worker %s runs on the CPUs %q and the memory of %q; want %v and 0", name, v.CPUs, v.Mems, place.CPUs)
		}
	}
}
