package device

import (
	"fmt"
	"os"
	"slices"
)

// Need is one worker that wants a place.
type Need struct {
	ID    string
	GPUs  []string // by PCI address: these and no others
	Count int      // of GPUs, any free ones; 0: the CPU alone
	Keep  []string // what it had before and gets again if it is there
	// Spare workers get what the others leave, or no place at all.
	Spare bool
}

// Place is what a worker gets.
type Place struct {
	GPUs  []GPU
	CPUs  []int
	Nodes []int // whose memory it takes; empty: any
}

// Machine is what there is to give away.
type Machine struct {
	Nodes    []Node
	Cores    []Core
	GPUs     []GPU
	Occupied map[string]string // GPUs that strangers hold: by PCI address, who
}

// Read reads a machine. allowed are the CPUs that may be used.
func Read(sysfs string, allowed []int) Machine {
	nodes, gpus := Nodes(sysfs), GPUs(sysfs)
	for i, g := range gpus {
		if g.Node < 0 {
			gpus[i].Node = nodeOf(nodes, g.CPUs)
		}
	}
	return Machine{Nodes: nodes, Cores: Cores(sysfs, nodes, allowed), GPUs: gpus}
}

// nodeOf is the one node that has all of some CPUs, and -1 where there is none: some
// kernels say which CPUs are beside a device and not which node.
func nodeOf(nodes []Node, cpus []int) int {
	for _, n := range nodes {
		if len(cpus) > 0 && len(n.CPUs) > 0 && !slices.ContainsFunc(cpus, func(c int) bool { return !slices.Contains(n.CPUs, c) }) {
			return n.ID
		}
	}
	return -1
}

// Plan gives every worker its GPUs, and cores and memory beside them. The
// door gets a core first, where there are more than two CPUs. A spare worker for
// which no GPU is left has no place. The error names the worker, and what is
// missing.
func (m Machine) Plan(needs []Need) (map[string]Place, error) {
	places, id, err := m.plan(needs)
	if err != nil {
		return nil, fmt.Errorf("worker %s: %w", id, err)
	}
	return places, nil
}

// Fit plans as Plan does for the workers that the machine has a place for, and says
// of each of the others why not. What one of those would have held is the others'.
func (m Machine) Fit(needs []Need) (map[string]Place, map[string]error) {
	left := map[string]error{}
	for {
		places, id, err := m.plan(needs)
		if err == nil {
			return places, left
		}
		left[id] = err
		needs = slices.DeleteFunc(slices.Clone(needs), func(n Need) bool { return n.ID == id })
	}
}

// plan gives every worker its place, or returns the first that has none, and why.
func (m Machine) plan(needs []Need) (_ map[string]Place, without string, _ error) {
	places := make(map[string]Place, len(needs))
	owner := map[string]string{}
	take := func(id string, g GPU) error {
		if other, taken := owner[g.PCI]; taken && other != id {
			return fmt.Errorf("GPU %s is that of worker %s already", g.PCI, other)
		}
		owner[g.PCI] = id
		p := places[id]
		p.GPUs = append(p.GPUs, g)
		places[id] = p
		return nil
	}
	for _, n := range needs {
		for _, pci := range n.GPUs {
			g, err := m.find(pci)
			if err == nil {
				err = take(n.ID, g)
			}
			if err != nil {
				return nil, n.ID, err
			}
		}
	}
	keep, free := func(n Need) []string { return n.Keep }, func(Need) []string { return m.free() }
	for i, pass := range []func(Need) []string{keep, free, keep, free} {
		for _, n := range needs {
			if n.Spare != (i > 1) {
				continue
			}
			for _, pci := range pass(n) {
				g, err := m.find(pci)
				if _, taken := owner[pci]; len(n.GPUs) > 0 || len(places[n.ID].GPUs) >= n.Count || taken || err != nil {
					continue
				}
				if err := take(n.ID, g); err != nil {
					return nil, n.ID, err
				}
			}
		}
	}
	var placed []Need
	for _, n := range needs {
		switch missing := len(n.GPUs) == 0 && len(places[n.ID].GPUs) < n.Count; {
		case !missing:
			placed = append(placed, n)
		case n.Spare:
			delete(places, n.ID)
		default:
			return nil, n.ID, fmt.Errorf("%d GPUs wanted, %d free of the %d on this machine; devices = \"cpu\" runs it on the CPU", n.Count, len(places[n.ID].GPUs), len(m.GPUs))
		}
	}
	m.cores(placed, places)
	return places, "", nil
}

// find returns a device that can be used, or says why not.
func (m Machine) find(pci string) (GPU, error) {
	i := slices.IndexFunc(m.GPUs, func(g GPU) bool { return g.PCI == pci })
	if i < 0 {
		return GPU{}, fmt.Errorf("GPU %s is not in this machine", pci)
	}
	switch g := m.GPUs[i]; {
	case g.Usable():
		return g, nil
	case g.Driver == "":
		return GPU{}, fmt.Errorf("GPU %s has no driver; load xe, i915 or nvidia", pci)
	case g.Driver == "vfio-pci":
		return GPU{}, fmt.Errorf("GPU %s is set aside for virtual machines (vfio-pci)", pci)
	case g.Integrated:
		return GPU{}, fmt.Errorf("GPU %s is the processor's own and has no memory for a model", pci)
	default:
		return GPU{}, fmt.Errorf("GPU %s cannot be used with the driver %s", pci, g.Driver)
	}
}

// free lists the usable devices that no stranger holds.
func (m Machine) free() []string {
	var out []string
	for _, g := range m.GPUs {
		if m.Occupied[g.PCI] == "" && g.Usable() {
			out = append(out, g.PCI)
		}
	}
	return out
}

// cores divides the cores: on each node among the workers whose GPU is there,
// and what is left among those without one.
func (m Machine) cores(needs []Need, places map[string]Place) {
	cores := m.Cores
	total := 0
	for _, c := range cores {
		total += len(c.CPUs)
	}
	if total > 2 && len(cores) > 1 {
		cores = cores[1:]
	}
	byNode := map[int][]string{}
	var rest []string
	for _, n := range needs {
		node := -1
		if gpus := places[n.ID].GPUs; len(gpus) > 0 {
			node = gpus[0].Node
		}
		if node < 0 || !slices.ContainsFunc(cores, func(c Core) bool { return c.Node == node }) {
			rest = append(rest, n.ID)
			continue
		}
		byNode[node] = append(byNode[node], n.ID)
	}
	var left []Core
	for _, c := range cores {
		if len(byNode[c.Node]) == 0 {
			left = append(left, c)
		}
	}
	if len(left) == 0 {
		left = cores
	}
	m.share(left, rest, places)
	for node, ids := range byNode {
		m.share(slices.DeleteFunc(slices.Clone(cores), func(c Core) bool { return c.Node != node }), ids, places)
	}
}

func (m Machine) share(cores []Core, ids []string, places map[string]Place) {
	for i, s := range split(cores, len(ids)) {
		p := places[ids[i]]
		p.CPUs, p.Nodes = s.CPUs, nil
		// One node alone has no choice to make, and one without memory cannot
		// be made to give any.
		if len(m.Nodes) > 1 {
			for _, n := range s.Nodes {
				if slices.ContainsFunc(m.Nodes, func(x Node) bool { return x.ID == n && x.MemoryBytes != 0 }) {
					p.Nodes = append(p.Nodes, n)
				}
			}
		}
		places[ids[i]] = p
	}
}

func entries(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out, err
}
