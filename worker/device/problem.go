package device

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing about a machine that keeps workers from running well,
// with what to do about it.
type Problem struct {
	About  string // "gpu 0000:18:00.0", "node 1", "worker chat/1", "cpus"
	Text   string
	Remedy string
	Fatal  bool // what is wanted cannot run
}

// Problems says what is wrong with the machine for the given workers: about
// devices, cores and memory nodes.
func (m Machine) Problems(needs []Need) []Problem {
	var out []Problem
	for _, g := range m.GPUs {
		out = append(out, m.ofGPU(g, claimed(needs, g.PCI))...)
	}
	for _, n := range m.Nodes {
		if n.MemoryBytes == 0 && len(n.CPUs) > 0 {
			out = append(out, Problem{fmt.Sprintf("node %d", n.ID), "it has CPUs and no memory; what runs there takes memory from other nodes",
				"put memory into its slots, or pin nothing there", false})
		}
	}
	if len(m.Cores) == 0 {
		out = append(out, Problem{"cpus", "none of the CPUs that are online may be used", "widen the cpuset (AllowedCPUs of systemd, cpuset.cpus of the container)", true})
	} else if n := cpuWorkers(needs); n > len(m.Cores) {
		out = append(out, Problem{"cpus", fmt.Sprintf("%d workers share %d cores", n, len(m.Cores)), "fewer workers, or a wider cpuset", false})
	}
	return append(out, m.ofNeeds(needs)...)
}

// claimed are the workers that name a device.
func claimed(needs []Need, pci string) []string {
	var out []string
	for _, n := range needs {
		if slices.Contains(n.GPUs, pci) {
			out = append(out, n.ID)
		}
	}
	return out
}

func cpuWorkers(needs []Need) int {
	n := 0
	for _, x := range needs {
		if len(x.GPUs) == 0 && x.Count == 0 && !x.Spare {
			n++
		}
	}
	return n
}

// ofGPU says what is wrong with one device.
func (m Machine) ofGPU(g GPU, workers []string) []Problem {
	about := "gpu " + g.PCI
	var out []Problem
	add := func(fatal bool, remedy, format string, args ...any) {
		out = append(out, Problem{about, fmt.Sprintf(format, args...), remedy, fatal})
	}
	wanted := len(workers) > 0
	switch {
	case g.Vendor == "other", g.Integrated && !wanted:
		return nil
	case g.Integrated:
		add(true, "name another one", "it is the processor's own and has no memory for a model; %s names it", strings.Join(workers, ", "))
	case g.Driver == "" && g.Vendor == "intel":
		add(wanted, "modprobe xe (i915 for Arc A and Flex); where dmesg says that the device is not supported, "+probe(g), "no driver is bound to it")
	case g.Driver == "" && g.Vendor == "nvidia", g.Driver == "nouveau":
		add(wanted, "install NVIDIA's driver", "the driver nvidia is not bound to it")
	case g.Driver == "vfio-pci":
		add(wanted, "give it back to this machine: driverctl unset-override "+g.PCI, "it is set aside for virtual machines (vfio-pci)")
	case g.Vendor == "intel" && g.Render == "":
		add(wanted, "dmesg says why; a kernel without DRM_XE or DRM_I915 support for it is the usual reason", "its driver %s has made no render node", g.Driver)
	case !g.Usable():
		add(wanted, "bind xe, i915 or nvidia to it", "no worker can use it with the driver %s", g.Driver)
	}
	if len(workers) > 1 {
		add(true, "name each device in one worker alone", "it is claimed by %s", strings.Join(workers, " and "))
	}
	if who := m.Occupied[g.PCI]; who != "" && g.Usable() {
		add(wanted, "end that process, or name another device", "%s holds memory of it", who)
	}
	return append(out, m.ofPlace(g)...)
}

// probe says how a kernel takes a device that it knows and does not vouch for.
func probe(g GPU) string {
	id := strings.TrimPrefix(g.Device, "0x")
	return "take a newer kernel, or boot with xe.force_probe=" + id + " i915.force_probe=!" + id
}

// ofPlace says what is wrong with the memory node of a device.
func (m Machine) ofPlace(g GPU) []Problem {
	if !g.Usable() || len(m.Nodes) < 2 {
		return nil
	}
	about := "gpu " + g.PCI
	i := slices.IndexFunc(m.Nodes, func(n Node) bool { return n.ID == g.Node })
	switch {
	case g.Node < 0:
		return []Problem{{about, "the machine does not say which memory node it is beside; its worker's cores may be far from it", "look for a newer BIOS, or pin by hand", false}}
	case i < 0:
		return []Problem{{about, fmt.Sprintf("its memory node %d is not there", g.Node), "put memory into that processor's slots; till then its worker takes memory from other nodes", false}}
	case m.Nodes[i].MemoryBytes == 0:
		return []Problem{{about, fmt.Sprintf("its memory node %d has no memory", g.Node), "put memory into that processor's slots; till then its worker takes memory from other nodes", false}}
	case !slices.ContainsFunc(m.Cores, func(c Core) bool { return c.Node == g.Node }):
		return []Problem{{about, fmt.Sprintf("no CPU of its memory node %d may be used", g.Node), "widen the cpuset (AllowedCPUs of systemd, cpuset.cpus of the container)", false}}
	}
	return nil
}

// ofNeeds says what workers want that is not there.
func (m Machine) ofNeeds(needs []Need) []Problem {
	var out []Problem
	for _, n := range needs {
		for _, pci := range n.GPUs {
			if !slices.ContainsFunc(m.GPUs, func(g GPU) bool { return g.PCI == pci }) {
				out = append(out, Problem{"worker " + n.ID, "GPU " + pci + " is not in this machine", "roundhouse doctor lists those that are", true})
			}
		}
	}
	if len(out) > 0 {
		return out // one device that is wrong makes the rest of the plan wrong
	}
	unclaimed := slices.Clone(needs)
	for i := range unclaimed {
		if i > 0 && len(claimed(needs[:i], firstOf(needs[i].GPUs))) > 0 {
			unclaimed[i].GPUs = nil // told already
		}
	}
	if _, err := m.Plan(unclaimed); err != nil {
		worker, why, _ := strings.Cut(strings.TrimPrefix(err.Error(), "worker "), ": ")
		out = append(out, Problem{"worker " + worker, why, "fewer workers, more GPUs, or devices = \"cpu\"", true})
	}
	return out
}

func firstOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
