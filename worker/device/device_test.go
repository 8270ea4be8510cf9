package device

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// tree makes a sysfs as the kernel lays it out: nodes of cores with
// hyper-threads, and GPUs beside them.
type tree struct {
	t    *testing.T
	root string
	cpus int
}

func newTree(t *testing.T, nodes, cores, threads int) *tree {
	tr := &tree{t: t, root: t.TempDir(), cpus: nodes * cores * threads}
	tr.write("devices/system/cpu/online", fmt.Sprintf("0-%d", tr.cpus-1))
	for n := range nodes {
		var list []int
		for c := range cores {
			// As on real machines: the second threads are numbered after all first ones.
			var siblings []int
			for h := range threads {
				siblings = append(siblings, h*nodes*cores+n*cores+c)
			}
			for _, s := range siblings {
				tr.write(fmt.Sprintf("devices/system/cpu/cpu%d/topology/thread_siblings_list", s), FormatList(siblings))
			}
			list = append(list, siblings...)
		}
		dir := fmt.Sprintf("devices/system/node/node%d/", n)
		tr.write(dir+"cpulist", FormatList(list))
		tr.write(dir+"meminfo", fmt.Sprintf("Node %d MemTotal:       65536 kB\nNode %d MemFree:        1 kB", n, n))
	}
	return tr
}

func (tr *tree) write(path, text string) {
	tr.t.Helper()
	path = filepath.Join(tr.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
		tr.t.Fatal(err)
	}
}

// gpu adds a device; render < 0: it has none.
func (tr *tree) gpu(pci, vendor, driver string, node, render int) {
	dir := "bus/pci/devices/" + pci + "/"
	tr.write(dir+"class", "0x030000")
	tr.write(dir+"vendor", vendor)
	tr.write(dir+"numa_node", fmt.Sprint(node))
	if vendor == "0x8086" && !strings.HasPrefix(pci, "0000:00:") {
		tr.write(dir+"device", "0xe211")
	}
	tr.write(dir+"resource", window(32<<30))
	if driver != "" {
		if err := os.Symlink("../../../../bus/pci/drivers/"+driver, filepath.Join(tr.root, dir, "driver")); err != nil {
			tr.t.Fatal(err)
		}
	}
	if render >= 0 {
		tr.write(fmt.Sprintf("%sdrm/renderD%d/dev", dir, 128+render), "226:128")
		tr.write(fmt.Sprintf("%sdrm/card%d/dev", dir, render), "226:0")
	}
}

// window is the resource file of a card with a window of so many bytes to its memory.
func window(bytes int64) string {
	const at = 0x380000000000
	return fmt.Sprintf("0x00000000a0000000 0x00000000a0ffffff 0x0000000000140204\n%#016x %#016x 0x000000000014220c", int64(at), at+bytes-1)
}

func (tr *tree) machine() Machine {
	var all []int
	for c := range tr.cpus {
		all = append(all, c)
	}
	return Read(tr.root, all)
}

func TestLists(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		list, err := ParseList(text)
		if got := FormatList(list); err != nil || got != want {
			t.Errorf("%q: got %q %v; want %q", text, got, err, want)
		}
	}
	f("0-3,8,10-11\n", "0-3,8,10-11")
	f("3,2,1,1", "1-3")
	f("", "")
	for _, bad := range []string{"a", "3-1", "-1", "1,,2", "0-99999999"} {
		if _, err := ParseList(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzParseList(f *testing.F) {
	f.Add("0-3,8,10-11")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseList(text)
		if err != nil {
			return
		}
		again, err := ParseList(FormatList(list))
		if err != nil || !reflect.DeepEqual(list, again) && len(list)+len(again) > 0 {
			t.Errorf("%q: %v, then %v %v", text, list, again, err)
		}
	})
}

func TestGPUs(t *testing.T) {
	tr := newTree(t, 2, 4, 2)
	tr.gpu("0000:00:02.0", "0x8086", "i915", 0, 0)
	tr.gpu("0000:18:00.0", "0x8086", "xe", 0, 1)
	tr.gpu("0000:4b:00.0", "0x8086", "", 1, -1)
	tr.gpu("0000:5e:00.0", "0x10de", "nvidia", 1, -1)
	tr.gpu("0000:6e:00.0", "0x8086", "vfio-pci", 1, -1)
	got := ""
	for _, g := range GPUs(tr.root) {
		got += fmt.Sprintln(g.PCI, g.Vendor, g.Driver, g.Render, g.Node, g.MemoryBytes>>30, g.Usable())
	}
	want := `0000:00:02.0 intel i915 /dev/dri/renderD128 0 0 false
0000:18:00.0 intel xe /dev/dri/renderD129 0 24 true
0000:4b:00.0 intel   1 24 false
0000:5e:00.0 nvidia nvidia  1 0 true
0000:6e:00.0 intel vfio-pci  1 24 false
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// What real machines' trees have and ours above have not, as recordings showed: masks
// in the place of lists, zero bytes, no list of what is online, nodes that claim the
// same CPUs, CPUs of no node, and devices that name CPUs and no node.
func TestOddTrees(t *testing.T) {
	show := func(m Machine) string {
		out := ""
		for _, n := range m.Nodes {
			out += fmt.Sprintf("node %d: %s. ", n.ID, FormatList(n.CPUs))
		}
		for _, c := range m.Cores {
			out += fmt.Sprintf("core %s on %d. ", FormatList(c.CPUs), c.Node)
		}
		for _, g := range m.GPUs {
			out += fmt.Sprintf("gpu %s on %d. ", g.PCI, g.Node)
		}
		return strings.TrimSpace(out)
	}
	f := func(name, want string, change func(*tree)) {
		t.Helper()
		tr := newTree(t, 2, 2, 1)
		change(tr)
		if got := show(tr.machine()); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
	all := "node 0: 0-1. node 1: 2-3. core 0 on 0. core 1 on 0. core 2 on 1. core 3 on 1."
	f("masks", all, func(tr *tree) {
		for n, mask := range []string{"0000,00000000,00000003", " 0000000c"} {
			dir := fmt.Sprintf("devices/system/node/node%d/", n)
			tr.write(dir+"cpulist", "no list")
			tr.write(dir+"cpumap", mask+"\n\x00")
		}
	})
	f("no list of what is online", "node 0: 0-1. node 1: 3. core 0 on 0. core 1 on 0. core 3 on 1.", func(tr *tree) {
		if err := os.Remove(filepath.Join(tr.root, "devices/system/cpu/online")); err != nil {
			t.Fatal(err)
		}
		tr.write("devices/system/cpu/cpu2/online", "0")
	})
	f("every node claims all", "node 0: 0-3. node 1: . core 0 on 0. core 1 on 0. core 2 on 0. core 3 on 0.", func(tr *tree) {
		tr.write("devices/system/node/node0/cpulist", "0-3")
		tr.write("devices/system/node/node1/cpulist", "0-3")
	})
	f("a node is gone", "node 1: 2-3. core 2 on 1. core 3 on 1. core 0 on -1. core 1 on -1.", func(tr *tree) {
		if err := os.RemoveAll(filepath.Join(tr.root, "devices/system/node/node0")); err != nil {
			t.Fatal(err)
		}
	})
	f("devices without a node", all+" gpu 0000:18:00.0 on 1. gpu 10000:e1:00.0 on -1.", func(tr *tree) {
		tr.gpu("0000:18:00.0", "0x8086", "xe", -1, 0)
		tr.write("bus/pci/devices/0000:18:00.0/local_cpus", "0000000c")
		tr.gpu("10000:e1:00.0", "0x8086", "xe", -1, 1)
		tr.write("bus/pci/devices/10000:e1:00.0/local_cpus", "0000000f")
	})
}

func FuzzParseMask(f *testing.F) {
	f.Add("0000,000000ff,ffffffff")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseMask(text)
		if err != nil {
			return
		}
		for i, n := range list {
			if n < 0 || n >= maxCPU || i > 0 && n <= list[i-1] {
				t.Fatalf("%q: %v", text, list)
			}
		}
	})
}

// show writes a plan in one line a worker.
func show(needs []Need, plan map[string]Place) string {
	out := ""
	for _, n := range needs {
		p := plan[n.ID]
		var gpus []string
		for _, g := range p.GPUs {
			gpus = append(gpus, g.PCI[5:7])
		}
		out += fmt.Sprintf("%s: gpus %s cpus %s nodes %s\n", n.ID, strings.Join(gpus, "+"), FormatList(p.CPUs), FormatList(p.Nodes))
	}
	return out
}

func TestPlan(t *testing.T) {
	f := func(name string, tr *tree, needs []Need, want string) {
		t.Helper()
		plan, err := tr.machine().Plan(needs)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = show(needs, plan)
		}
		if err == nil && got != want || err != nil && !strings.Contains(got, want) || want == "" {
			t.Errorf("%s: got\n%swant\n%s", name, got, want)
		}
	}
	two := []Need{{ID: "a"}, {ID: "b"}}
	f("two CPUs, two workers, none for the door", newTree(t, 1, 2, 1), two, "a: gpus  cpus 0 nodes \nb: gpus  cpus 1 nodes \n")
	f("four cores with threads, one for the door", newTree(t, 1, 4, 2), two, "a: gpus  cpus 1,5 nodes \nb: gpus  cpus 2-3,6-7 nodes \n")
	f("one CPU for three", newTree(t, 1, 1, 1), []Need{{ID: "a"}, {ID: "b"}, {ID: "c"}}, "a: gpus  cpus 0 nodes \nb: gpus  cpus 0 nodes \nc: gpus  cpus 0 nodes \n")

	eight := func(nodes int) *tree {
		tr := newTree(t, nodes, 8, 2)
		for i := range 8 {
			tr.gpu(fmt.Sprintf("0000:%02x:00.0", 0x10+i), "0x8086", "xe", i*nodes/8, i)
		}
		return tr
	}
	var needs []Need
	for i := range 8 {
		needs = append(needs, Need{ID: fmt.Sprint("w", i), Count: 1})
	}
	f("eight GPUs on four nodes", eight(4), needs, `w0: gpus 10 cpus 1-3,33-35 nodes 0
w1: gpus 11 cpus 4-7,36-39 nodes 0
w2: gpus 12 cpus 8-11,40-43 nodes 1
w3: gpus 13 cpus 12-15,44-47 nodes 1
w4: gpus 14 cpus 16-19,48-51 nodes 2
w5: gpus 15 cpus 20-23,52-55 nodes 2
w6: gpus 16 cpus 24-27,56-59 nodes 3
w7: gpus 17 cpus 28-31,60-63 nodes 3
`)
	f("nine for eight", eight(2), append(needs, Need{ID: "w8", Count: 1}), "worker w8: 1 GPUs wanted, 0 free of the 8")
	f("what it had it keeps", eight(2), []Need{{ID: "a", Count: 1}, {ID: "b", Count: 1, Keep: []string{"0000:10:00.0"}}},
		"a: gpus 11 cpus 1-3,17-19 nodes 0\nb: gpus 10 cpus 4-7,20-23 nodes 0\n")
	f("named twice", eight(2), []Need{{ID: "a", GPUs: []string{"0000:10:00.0"}}, {ID: "b", GPUs: []string{"0000:10:00.0"}}}, "GPU 0000:10:00.0 is that of worker a")
	f("not there", eight(1), []Need{{ID: "a", GPUs: []string{"0000:99:00.0"}}}, "GPU 0000:99:00.0 is not in this machine")

	empty := newTree(t, 2, 2, 1)
	empty.gpu("0000:18:00.0", "0x8086", "", 1, -1)
	empty.write("devices/system/node/node1/meminfo", "Node 1 MemTotal: 0 kB")
	f("no driver", empty, []Need{{ID: "a", GPUs: []string{"0000:18:00.0"}}}, "load xe, i915 or nvidia")
	f("a node without memory", empty, []Need{{ID: "a"}}, "a: gpus  cpus 1-3 nodes 0\n")
}

func TestForeignGPUIsNotTaken(t *testing.T) {
	tr := newTree(t, 1, 4, 1)
	tr.gpu("0000:18:00.0", "0x8086", "xe", 0, 0)
	tr.gpu("0000:4b:00.0", "0x8086", "xe", 0, 1)
	m := tr.machine()
	m.Occupied = map[string]string{"0000:18:00.0": "process 42"}
	plan, err := m.Plan([]Need{{ID: "a", Count: 1}})
	if err != nil || plan["a"].GPUs[0].PCI != "0000:4b:00.0" {
		t.Errorf("%+v %v", plan, err)
	}
}

// A client of the driver counts once, also where others have been handed what is open.
func TestHolders(t *testing.T) {
	tr := newTree(t, 1, 1, 1)
	fd := func(pid, fd int, pci string, client, kib int) {
		tr.write(fmt.Sprintf("proc/%d/fdinfo/%d", pid, fd), fmt.Sprintf("pos:\t0\ndrm-driver:\txe\ndrm-client-id:\t%d\ndrm-pdev:\t%s\ndrm-total-vram0:\t%d KiB\ndrm-resident-vram0:\t%d KiB", client, pci, kib*2, kib))
	}
	fd(10, 3, "0000:18:00.0", 1, 1024)
	fd(10, 4, "0000:18:00.0", 1, 1024) // the same client once more
	fd(10, 5, "0000:18:00.0", 2, 512)
	fd(11, 3, "0000:4b:00.0", 3, 4)
	tr.write("proc/12/fdinfo/0", "pos:\t0")
	f := func(complete bool, want ...Holder) {
		t.Helper()
		list, c := Holders(filepath.Join(tr.root, "proc"), "0000:18:00.0")
		if c != complete || !reflect.DeepEqual(list, want) {
			t.Errorf("%+v %v; want %+v %v", list, c, want, complete)
		}
	}
	f(true, Holder{PID: 10, Bytes: 1536 << 10})
	fd(13, 7, "0000:18:00.0", 2, 512) // handed on
	f(true, Holder{PID: 10, Bytes: 1536 << 10}, Holder{PID: 13})
	// i915 before 6.8 counts engines and no memory: what is held is unknown, not nothing.
	tr.write("proc/14/fdinfo/3", "drm-driver:\ti915\ndrm-client-id:\t9\ndrm-pdev:\t0000:18:00.0\ndrm-engine-render:\t1000 ns\ndrm-engine-capacity-video:\t2")
	f(false, Holder{PID: 10, Bytes: 1536 << 10}, Holder{PID: 13}, Holder{PID: 14, Bytes: -1})
}

// This machine, whatever it is, can be read and planned.
func TestHere(t *testing.T) {
	nodes := Nodes("/sys")
	var all []int
	for _, n := range nodes {
		all = append(all, n.CPUs...)
	}
	m := Read("/sys", all)
	plan, err := m.Plan([]Need{{ID: "a"}})
	if err != nil || len(plan["a"].CPUs) == 0 {
		t.Errorf("%+v %v", plan, err)
	}
}
