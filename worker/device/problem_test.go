package device

import (
	"fmt"
	"strings"
	"testing"
)

// tell writes problems in one line each.
func tell(list []Problem) string {
	out := ""
	for _, p := range list {
		word := "warn"
		if p.Fatal {
			word = "fail"
		}
		out += fmt.Sprintf("%s %s: %s → %s\n", word, p.About, p.Text, p.Remedy)
	}
	return out
}

// Every problem is told with its remedy, and a machine that is well has none.
func TestProblems(t *testing.T) {
	f := func(name string, m Machine, needs []Need, want ...string) {
		t.Helper()
		list := m.Problems(needs)
		got := tell(list)
		if len(list) != len(want) {
			t.Errorf("%s: %d problems, want %d:\n%s", name, len(list), len(want), got)
			return
		}
		for i, w := range want {
			state, text, _ := strings.Cut(w, " ")
			if line := strings.Split(got, "\n")[i]; !strings.HasPrefix(line, state+" ") || !strings.Contains(line, text) || list[i].Remedy == "" {
				t.Errorf("%s: got %q; want %q", name, line, w)
			}
		}
	}
	one := func(vendor, driver string, node, render int) Machine {
		tr := newTree(t, 2, 4, 2)
		tr.gpu("0000:18:00.0", vendor, driver, node, render)
		return tr.machine()
	}
	use := []Need{{ID: "chat/1", GPUs: []string{"0000:18:00.0"}}}
	const intel, nvidia = "0x8086", "0x10de"
	f("well", one(intel, "xe", 0, 0), use)
	f("well, i915", one(intel, "i915", 1, 0), use)
	f("well, NVIDIA", one(nvidia, "nvidia", 1, -1), use)
	f("no driver, wanted", one(intel, "", 0, -1), use, "fail modprobe xe", "fail has no driver")
	f("no driver, not wanted", one(intel, "", 0, -1), nil, "warn xe.force_probe=e211 i915.force_probe=!e211")
	f("no driver of NVIDIA's", one(nvidia, "nouveau", 0, -1), nil, "warn install NVIDIA's driver")
	f("for virtual machines", one(intel, "vfio-pci", 0, -1), nil, "warn driverctl unset-override 0000:18:00.0")
	f("no render node", one(intel, "xe", 0, -1), nil, "warn has made no render node")
	f("an unknown driver", one(intel, "snd_hda_intel", 0, 0), nil, "warn with the driver snd_hda_intel")
	f("no node known", one(intel, "xe", -1, 0), use, "warn does not say which memory node")
	f("a node that is not there", one(intel, "xe", 7, 0), use, "warn memory node 7 is not there")
	f("not in the machine", one(intel, "xe", 0, 0), []Need{{ID: "chat/1", GPUs: []string{"0000:99:00.0"}}}, "fail worker chat/1: GPU 0000:99:00.0 is not in this machine")
	f("claimed twice", one(intel, "xe", 0, 0), append(use, Need{ID: "chat/2", GPUs: []string{"0000:18:00.0"}}), "fail claimed by chat/1 and chat/2")
	f("too few", one(intel, "xe", 0, 0), []Need{{ID: "a", Count: 1}, {ID: "b", Count: 1}}, "fail worker b: 1 GPUs wanted, 0 free of the 1")
	f("spare workers want nothing", one(intel, "xe", 0, 0), []Need{{ID: "a", Count: 1}, {ID: "relief", Count: 1, Spare: true}})

	m := one(intel, "xe", 0, 0)
	m.Occupied = map[string]string{"0000:18:00.0": "process 42"}
	f("held by a stranger, wanted", m, use, "fail process 42 holds memory")

	integrated := newTree(t, 1, 2, 1)
	integrated.gpu("0000:00:02.0", intel, "i915", 0, 0)
	f("the processor's own is no problem", integrated.machine(), nil)
	f("unless it is wanted", integrated.machine(), []Need{{ID: "a", GPUs: []string{"0000:00:02.0"}}}, "fail the processor's own", "fail the processor's own")

	empty := newTree(t, 2, 4, 1)
	empty.gpu("0000:18:00.0", intel, "xe", 1, 0)
	empty.write("devices/system/node/node1/meminfo", "Node 1 MemTotal: 0 kB")
	f("a node without memory", empty.machine(), use, "warn its memory node 1 has no memory", "warn node 1: it has CPUs and no memory")

	narrow := newTree(t, 2, 4, 1)
	narrow.gpu("0000:18:00.0", intel, "xe", 1, 0)
	f("a cpuset without the GPU's node", Read(narrow.root, []int{0, 1}), use, "warn no CPU of its memory node 1 may be used")
	f("an empty cpuset", Read(narrow.root, nil), nil, "warn no CPU of its memory node 1 may be used", "fail widen the cpuset")
	f("more workers than cores", newTree(t, 1, 2, 2).machine(), []Need{{ID: "a"}, {ID: "b"}, {ID: "c"}}, "warn 3 workers share 2 cores")
}

// Machines of one to eight GPUs on one to four nodes, in the kernel's layout: every
// worker gets a GPU of its own and cores beside it, no core is given twice while
// there are enough, threads of a core stay together, and one core is left for the door.
func TestMachines(t *testing.T) {
	kinds := [][2]string{{"0x8086", "xe"}, {"0x8086", "i915"}, {"0x10de", "nvidia"}}
	for _, nodes := range []int{1, 2, 4} {
		tr := newTree(t, nodes, 9, 2)
		var needs []Need
		for i := range 8 {
			tr.gpu(fmt.Sprintf("0000:%02x:00.0", 0x10+i), kinds[i%3][0], kinds[i%3][1], i%nodes, i)
			needs = append(needs, Need{ID: fmt.Sprint("w", i), Count: 1})
			checkMachine(t, fmt.Sprintf("%d nodes, %d GPUs", nodes, i+1), tr.machine(), nodes, needs)
		}
	}
}

// checkMachine holds the plan for one machine of 9 cores a node against what is said above.
func checkMachine(t *testing.T, name string, m Machine, nodes int, needs []Need) {
	t.Helper()
	cores := 9 * nodes
	if list := m.Problems(needs); len(list) > 0 {
		t.Errorf("%s: %s", name, tell(list))
	}
	plan, err := m.Plan(needs)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	given, held := map[int]string{}, map[string]string{}
	for _, n := range needs {
		p := plan[n.ID]
		if len(p.GPUs) != 1 || held[p.GPUs[0].PCI] != "" || len(p.CPUs) == 0 {
			t.Errorf("%s: %s got %+v", name, n.ID, p)
			continue
		}
		held[p.GPUs[0].PCI] = n.ID
		for _, cpu := range p.CPUs {
			if given[cpu] != "" {
				t.Errorf("%s: CPU %d is %s's and %s's", name, cpu, given[cpu], n.ID)
			}
			given[cpu] = n.ID
			if at := cpu % cores / 9; at != p.GPUs[0].Node {
				t.Errorf("%s: %s has CPU %d of node %d, its GPU is on node %d", name, n.ID, cpu, at, p.GPUs[0].Node)
			}
		}
		if nodes > 1 && (len(p.Nodes) != 1 || p.Nodes[0] != p.GPUs[0].Node) {
			t.Errorf("%s: %s takes memory of %v", name, n.ID, p.Nodes)
		}
	}
	for cpu, who := range given {
		if sibling := (cpu + cores) % (2 * cores); given[sibling] != who {
			t.Errorf("%s: CPU %d is %s's, its sibling %d is %q's", name, cpu, who, sibling, given[sibling])
		}
	}
	if len(given) > 2*cores-2 {
		t.Errorf("%s: no core is left for the door", name)
	}
}
