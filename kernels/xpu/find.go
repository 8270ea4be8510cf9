package xpu

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"roundhouse/kernels/xpu/cl"
)

// Selection says which device is wanted.
type Selection struct {
	// Name is a PCI address ("0000:18:00.0" or "18:00.0"), a UUID, a number among the
	// GPUs in the order of their PCI addresses, those of processors last, or "cpu" for an
	// OpenCL driver of the CPU (for tests). Empty: the only GPU there is beside those of
	// processors.
	Name string
	// Mask and Selector are the values of ZE_AFFINITY_MASK and ONEAPI_DEVICE_SELECTOR,
	// which hide devices from other software of this process's owner as well.
	Mask, Selector string
	// Nodes is the folder of the render nodes; empty: /dev/dri.
	Nodes string

	open func(node string) error // in tests: opens a render node
}

// Find chooses one device of those that OpenCL offers, or says in one sentence what
// is there instead and what to do.
func Find(lib *cl.Library, s Selection) (cl.Device, error) {
	all, err := lib.Devices()
	if err != nil {
		return cl.Device{}, err
	}
	return choose(all, s)
}

// All lists the devices that a selection leaves, in the order of their numbers: the GPUs,
// or, where its name is "cpu", what OpenCL drivers offer of the processor.
func All(lib *cl.Library, s Selection) ([]cl.Device, error) {
	all, err := lib.Devices()
	if err != nil {
		return nil, err
	}
	if s.Name == "cpu" {
		return slices.DeleteFunc(all, func(d cl.Device) bool { return d.Kind != cl.CPU }), nil
	}
	gpus := visible(gpusOf(all), s)
	slices.SortStableFunc(gpus, byAddress)
	return gpus, nil
}

func choose(all []cl.Device, s Selection) (cl.Device, error) {
	if s.Name == "cpu" {
		for _, d := range all {
			if d.Kind == cl.CPU {
				return d, nil
			}
		}
		return cl.Device{}, fmt.Errorf("no OpenCL driver offers the CPU; the package pocl-opencl-icd has one")
	}
	gpus := visible(gpusOf(all), s)
	if len(gpus) == 0 {
		return cl.Device{}, nothing(all, s)
	}
	slices.SortStableFunc(gpus, byAddress)
	if s.Name == "" {
		if len(gpus) > 1 && !(gpus[1].Unified && !gpus[0].Unified) {
			return cl.Device{}, fmt.Errorf("there are %d GPUs; name one, as in --device xpu:%s (there are %s)", len(gpus), gpus[0].PCI, list(gpus))
		}
		return gpus[0], nil
	}
	name := strings.ToLower(s.Name)
	if n, err := strconv.Atoi(name); err == nil {
		if n < 0 || n >= len(gpus) {
			return cl.Device{}, fmt.Errorf("there is no GPU number %d; there are %s", n, list(gpus))
		}
		return gpus[n], nil
	}
	for _, d := range gpus {
		if d.PCI != "" && (d.PCI == name || d.PCI == "0000:"+name) || d.UUID != "" && d.UUID == strings.ReplaceAll(name, "-", "") {
			return d, nil
		}
	}
	return cl.Device{}, fmt.Errorf("there is no GPU %s; there are %s", s.Name, list(gpus))
}

// gpusOf is the GPUs in the order in which drivers list them, one entry a device: where
// two drivers offer the same one, the later version of OpenCL stands.
func gpusOf(all []cl.Device) []cl.Device {
	var gpus []cl.Device
	for _, d := range all {
		if d.Kind&cl.GPU == 0 {
			continue
		}
		i := slices.IndexFunc(gpus, func(o cl.Device) bool { return d.PCI != "" && o.PCI == d.PCI })
		switch {
		case i < 0:
			gpus = append(gpus, d)
		case d.Version > gpus[i].Version:
			gpus[i] = d
		}
	}
	return gpus
}

// byAddress orders GPUs by their PCI addresses, those that share the machine's memory last.
func byAddress(a, b cl.Device) int {
	if a.Unified != b.Unified {
		if b.Unified {
			return -1
		}
		return 1
	}
	return strings.Compare(a.PCI, b.PCI)
}

// visible applies the two variables: a mask such as "1,0" or "0.1", and a selector such as
// "opencl:gpu", "level_zero:0,2" or "*:gpu;!*:0", whose numbers are those of the driver's
// own list. Intel's driver has applied the mask itself, to OpenCL as well: what it shows is
// what the mask leaves.
func visible(gpus []cl.Device, s Selection) []cl.Device {
	if s.Mask != "" && !slices.ContainsFunc(gpus, masked) {
		gpus = these(gpus, numbered(s.Mask, len(gpus)))
	}
	if s.Selector == "" {
		return gpus
	}
	var kept, out []int
	named := false // what is only struck out leaves the rest
	for _, part := range strings.Split(s.Selector, ";") {
		if struck, not := strings.CutPrefix(strings.TrimSpace(part), "!"); not {
			out = append(out, selected(struck, len(gpus))...)
			continue
		}
		named = true
		kept = append(kept, selected(part, len(gpus))...)
	}
	if !named {
		kept = selected("*", len(gpus))
	}
	return these(gpus, slices.DeleteFunc(kept, func(n int) bool { return slices.Contains(out, n) }))
}

// masked reports whether a device's driver applies ZE_AFFINITY_MASK.
func masked(d cl.Device) bool { return d.Intels() }

// these are the devices of some numbers, each once, in the order of the list.
func these(gpus []cl.Device, numbers []int) []cl.Device {
	var out []cl.Device
	for n, d := range gpus {
		if slices.Contains(numbers, n) {
			out = append(out, d)
		}
	}
	return out
}

// numbered reads a list of the numbers of so many devices; a tile of a card ("0.1") is on the
// card.
func numbered(list string, many int) []int {
	var out []int
	for _, part := range strings.Split(list, ",") {
		card, _, _ := strings.Cut(strings.TrimSpace(part), ".")
		if n, err := strconv.Atoi(card); err == nil && n >= 0 && n < many {
			out = append(out, n)
		}
	}
	return out
}

// selected are those of so many GPUs that one "backend:devices" of a selector names. The
// older form "backend:kind:number" is one as well.
func selected(part string, many int) []int {
	words := strings.Split(strings.ToLower(strings.TrimSpace(part)), ":")
	if len(words) == 1 {
		words = append(words, "*")
	}
	if len(words) > 2 && words[1] != "gpu" && words[1] != "*" {
		return nil
	}
	var out []int
	for _, device := range strings.Split(words[len(words)-1], ",") {
		kind, _, _ := strings.Cut(strings.TrimSpace(device), ".") // "gpu.*" and "*.*" are tiles
		if kind != "*" && kind != "gpu" {
			out = append(out, numbered(device, many)...)
			continue
		}
		for i := range many {
			out = append(out, i)
		}
	}
	return out
}

// nothing says why there is no GPU to use.
func nothing(all []cl.Device, s Selection) error {
	if hidden := gpusOf(all); len(hidden) > 0 {
		return fmt.Errorf("ZE_AFFINITY_MASK=%q and ONEAPI_DEVICE_SELECTOR=%q hide every GPU; there are %s", s.Mask, s.Selector, list(hidden))
	}
	nodes := s.Nodes
	if nodes == "" {
		nodes = "/dev/dri"
	}
	found, _ := filepath.Glob(filepath.Join(nodes, "renderD*"))
	for _, n := range found {
		open := s.open
		if open == nil {
			open = openNode
		}
		if os.IsPermission(open(n)) {
			return fmt.Errorf("%s may not be opened: add this user to the group that owns it (render), or pass the device to the container with its group", n)
		}
	}
	if len(found) > 0 && s.Mask != "" {
		return fmt.Errorf("%s is there, but no OpenCL driver offers a GPU: ZE_AFFINITY_MASK=%q hides all others from Intel's driver, or the driver is not installed (on Debian intel-opencl-icd)", found[0], s.Mask)
	}
	if len(found) > 0 {
		return fmt.Errorf("%s is there, but no OpenCL driver offers a GPU; install the driver, on Debian intel-opencl-icd", found[0])
	}
	return fmt.Errorf("no OpenCL driver offers a GPU, and %s has no render node: is there a GPU, and is it passed to this container?", nodes)
}

func openNode(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// list names devices for people.
func list(gpus []cl.Device) string {
	words := make([]string, len(gpus))
	for i, d := range gpus {
		words[i] = fmt.Sprintf("%d: %s (%s)", i, d.PCI, d.Name)
		if d.PCI == "" {
			words[i] = fmt.Sprintf("%d: %s", i, d.Name)
		}
	}
	return strings.Join(words, ", ")
}
