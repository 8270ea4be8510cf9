package device

import (
	"slices"
	"strconv"
	"strings"
)

// Binding is where a worker should run so that it is beside its GPU.
type Binding struct {
	CPUs  []int // empty: as it is
	Nodes []int // whose memory it takes first; empty: as it is
}

// Bind says what is left to do for a process that may run on the CPUs of allowed, so that
// it runs beside a GPU and takes memory there. A process that is beside it already, or
// that may not run there, stays where it is; a machine with one node has no choice.
func Bind(sysfs string, g GPU, allowed []int) Binding {
	nodes := Nodes(sysfs)
	at := slices.IndexFunc(nodes, func(n Node) bool { return n.ID == g.Node })
	if at < 0 || len(nodes) < 2 {
		return Binding{}
	}
	var b Binding
	if nodes[at].MemoryBytes != 0 {
		b.Nodes = []int{g.Node}
	}
	near := g.CPUs
	if len(near) == 0 {
		near = nodes[at].CPUs
	}
	for _, c := range allowed {
		if slices.Contains(near, c) {
			b.CPUs = append(b.CPUs, c)
		}
	}
	if len(b.CPUs) == len(allowed) {
		b.CPUs = nil
	}
	return b
}

// Named finds Intel's GPU that a name stands for: a PCI address, with or without its
// domain, a number among the usable ones in the order of their addresses, or nothing where
// there is one alone.
func Named(gpus []GPU, name string) (GPU, bool) {
	var usable []GPU
	for _, g := range gpus {
		if g.Vendor == "intel" && g.Usable() {
			usable = append(usable, g)
		}
	}
	if name == "" && len(usable) == 1 {
		return usable[0], true
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(usable) {
		return usable[n], true
	}
	name = strings.ToLower(name)
	for _, g := range usable {
		if name != "" && (g.PCI == name || g.PCI == "0000:"+name) {
			return g, true
		}
	}
	return GPU{}, false
}
