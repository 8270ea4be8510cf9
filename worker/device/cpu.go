package device

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Node is one memory node and the CPUs beside it.
type Node struct {
	ID          int
	CPUs        []int
	MemoryBytes int64 // 0: a node without memory
}

// Core is one physical core: its hyper-threads are used together or not at all.
type Core struct {
	CPUs []int
	Node int // -1: no memory node has it
}

// read returns a small file's text without what is blank around it, which on some
// kernels is a zero byte as well; empty where it cannot be read.
func read(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.Trim(string(data), " \t\n\x00")
}

// Nodes reads the memory nodes under sysfs, of the CPUs that are online. A
// kernel without NUMA has one node with all of them.
func Nodes(sysfs string) []Node {
	online := onlineCPUs(sysfs)
	dirs, _ := filepath.Glob(filepath.Join(sysfs, "devices/system/node/node[0-9]*"))
	var nodes []Node
	for _, dir := range dirs {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "node"))
		if err != nil {
			continue
		}
		cpus := readSet(filepath.Join(dir, "cpumap"), filepath.Join(dir, "cpulist"))
		cpus = slices.DeleteFunc(cpus, func(c int) bool { return !slices.Contains(online, c) })
		nodes = append(nodes, Node{ID: id, CPUs: cpus, MemoryBytes: memTotal(filepath.Join(dir, "meminfo"))})
	}
	if len(nodes) == 0 {
		nodes = []Node{{ID: 0, CPUs: online, MemoryBytes: -1}}
	}
	slices.SortFunc(nodes, func(a, b Node) int { return a.ID - b.ID })
	// Some firmware gives a CPU to several nodes; it is the first one's.
	seen := map[int]bool{}
	for i := range nodes {
		nodes[i].CPUs = slices.DeleteFunc(nodes[i].CPUs, func(c int) bool { return seen[c] })
		for _, c := range nodes[i].CPUs {
			seen[c] = true
		}
	}
	return nodes
}

// onlineCPUs are the CPUs that run: those that the kernel lists, or, where it has no
// list, all that have a folder and are not switched off.
func onlineCPUs(sysfs string) []int {
	if text := read(filepath.Join(sysfs, "devices/system/cpu/online")); text != "" {
		if list, err := ParseList(text); err == nil {
			return list
		}
	}
	var out []int
	dirs, _ := filepath.Glob(filepath.Join(sysfs, "devices/system/cpu/cpu[0-9]*"))
	for _, dir := range dirs {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "cpu"))
		if err == nil && read(filepath.Join(dir, "online")) != "0" {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// memTotal reads "Node 0 MemTotal:  123 kB" in bytes.
func memTotal(path string) int64 {
	for line := range strings.Lines(read(path)) {
		fields := strings.Fields(line)
		for i, f := range fields {
			if f == "MemTotal:" && i+1 < len(fields) {
				kb, _ := strconv.ParseInt(fields[i+1], 10, 64)
				return kb << 10
			}
		}
	}
	return 0
}

// Cores groups the given CPUs into physical cores, in the order of nodes and
// numbers. Only those in allowed count. Those that run and are on no node, since it
// has no memory and the kernel leaves it out, come last.
func Cores(sysfs string, nodes []Node, allowed []int) []Core {
	var cores []Core
	rest := onlineCPUs(sysfs)
	for _, node := range nodes {
		rest = slices.DeleteFunc(rest, func(c int) bool { return slices.Contains(node.CPUs, c) })
	}
	for _, node := range append(slices.Clone(nodes), Node{ID: -1, CPUs: rest}) {
		seen := map[int]bool{}
		for _, cpu := range node.CPUs {
			if seen[cpu] || !slices.Contains(allowed, cpu) {
				continue
			}
			path := filepath.Join(sysfs, "devices/system/cpu/cpu"+strconv.Itoa(cpu), "topology/thread_siblings")
			siblings := readSet(path, path+"_list")
			if len(siblings) == 0 {
				siblings = []int{cpu}
			}
			core := Core{Node: node.ID}
			for _, s := range siblings {
				seen[s] = true
				if slices.Contains(allowed, s) && slices.Contains(node.CPUs, s) {
					core.CPUs = append(core.CPUs, s)
				}
			}
			cores = append(cores, core)
		}
	}
	return cores
}

// Share is one worker's part of the CPU.
type Share struct {
	CPUs  []int
	Nodes []int
}

// split divides cores among n workers, whole cores to each, neighbours
// together. Where there are fewer cores than workers, they take turns on them.
func split(cores []Core, n int) []Share {
	shares := make([]Share, n)
	if len(cores) == 0 {
		return shares
	}
	for i := range shares {
		from, to := i*len(cores)/n, (i+1)*len(cores)/n
		if from == to {
			from = i % len(cores)
			to = from + 1
		}
		for _, c := range cores[from:to] {
			shares[i].CPUs = append(shares[i].CPUs, c.CPUs...)
			if !slices.Contains(shares[i].Nodes, c.Node) {
				shares[i].Nodes = append(shares[i].Nodes, c.Node)
			}
		}
	}
	return shares
}

// NodesOf returns the nodes that the CPUs of a list lie on.
func NodesOf(nodes []Node, cpus string) []int {
	list, err := ParseList(cpus)
	out := []int{}
	if err != nil {
		return out
	}
	for _, n := range nodes {
		if slices.ContainsFunc(list, func(c int) bool { return slices.Contains(n.CPUs, c) }) {
			out = append(out, n.ID)
		}
	}
	return out
}
