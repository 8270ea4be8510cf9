package device

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// GPU is one graphics device of this machine.
type GPU struct {
	PCI         string // "0000:18:00.0"
	Device      string // its kind, by PCI device id: "0xe211"
	Vendor      string // "intel", "nvidia" or "other"
	Driver      string // "xe", "i915", "nvidia", "vfio-pci"; empty: none is bound
	Render      string // "/dev/dri/renderD128"; empty: none
	Card        string // "/dev/dri/card0"; empty: none
	Node        int    // its memory node; -1: the machine does not say
	CPUs        []int  // beside it; empty: the machine does not say
	MemoryBytes int64  // of its own; 0: unknown
	Integrated  bool   // shares the machine's memory
}

// Usable reports whether a worker can run on the device.
func (g GPU) Usable() bool {
	switch g.Vendor {
	case "intel":
		return !g.Integrated && g.Render != "" && (g.Driver == "xe" || g.Driver == "i915")
	case "nvidia":
		return g.Driver == "nvidia"
	}
	return false
}

var pciName = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// GPUs reads the graphics devices under sysfs, in the order of their PCI
// addresses, which is the same at every boot.
func GPUs(sysfs string) []GPU {
	dir := filepath.Join(sysfs, "bus/pci/devices")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []GPU
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		class := read(filepath.Join(path, "class"))
		if !pciName.MatchString(e.Name()) || !strings.HasPrefix(class, "0x03") && !strings.HasPrefix(class, "0x1200") {
			continue
		}
		if _, err := os.Stat(filepath.Join(path, "physfn")); err == nil {
			continue // a share of another device, for virtual machines
		}
		out = append(out, readGPU(path, e.Name()))
	}
	slices.SortFunc(out, func(a, b GPU) int { return strings.Compare(a.PCI, b.PCI) })
	return out
}

func readGPU(path, pci string) GPU {
	g := GPU{PCI: pci, Device: strings.ToLower(read(filepath.Join(path, "device"))), Vendor: "other", Node: -1}
	switch read(filepath.Join(path, "vendor")) {
	case "0x8086":
		g.Vendor = "intel"
	case "0x10de":
		g.Vendor = "nvidia"
	}
	if link, err := os.Readlink(filepath.Join(path, "driver")); err == nil {
		g.Driver = filepath.Base(link)
	}
	drm, _ := os.ReadDir(filepath.Join(path, "drm"))
	for _, e := range drm {
		switch {
		case strings.HasPrefix(e.Name(), "renderD"):
			g.Render = "/dev/dri/" + e.Name()
		case strings.HasPrefix(e.Name(), "card"):
			g.Card = "/dev/dri/" + e.Name()
			g.MemoryBytes = number(read(filepath.Join(path, "drm", e.Name(), "lmem_total_bytes")))
		}
	}
	if n, err := strconv.Atoi(read(filepath.Join(path, "numa_node"))); err == nil {
		g.Node = n
	}
	g.CPUs = readSet(filepath.Join(path, "local_cpus"), filepath.Join(path, "local_cpulist"))
	// Intel puts what is built into the processor on the first bus; a virtual machine has
	// cards there as well, which are known by their kind.
	card, known := g.card()
	g.Integrated = g.Vendor == "intel" && !known && strings.HasPrefix(pci, "0000:00:")
	if g.MemoryBytes == 0 {
		g.MemoryBytes = card.bytes(largestWindow(read(filepath.Join(path, "resource"))))
	}
	return g
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// largestWindow reads the largest prefetchable window of a device from its
// resource file. It is a power of two: 32 GiB for 24 of memory, and less than the memory
// where the firmware leaves it so.
func largestWindow(resource string) int64 {
	const prefetchable = 0x2000
	var largest uint64
	for line := range strings.Lines(resource) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		start, errA := strconv.ParseUint(fields[0], 0, 64)
		end, errB := strconv.ParseUint(fields[1], 0, 64)
		flags, errC := strconv.ParseUint(fields[2], 0, 64)
		if errA == nil && errB == nil && errC == nil && flags&prefetchable != 0 && end > start {
			largest = max(largest, end-start+1)
		}
	}
	return int64(largest)
}
