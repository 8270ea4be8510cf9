package cpu

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"roundhouse/kernels"
)

// nodesHere is the processors of this machine and the memory node of each.
func nodesHere(t *testing.T) (cpus, nodes []int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	dirs, _ := filepath.Glob("/sys/devices/system/node/node*/cpu[0-9]*")
	for _, dir := range dirs {
		cpu, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "cpu"))
		node, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(dir)), "node"))
		if set.IsSet(cpu) {
			cpus, nodes = append(cpus, cpu), append(nodes, node)
		}
	}
	if len(cpus) == 0 {
		t.Skip("this kernel tells of no memory nodes")
	}
	return cpus, nodes
}

// nodesOf is the memory node of each page of a piece of memory, as the kernel has it.
func nodesOf(t *testing.T, m []byte) []int32 {
	t.Helper()
	size := os.Getpagesize()
	var pages []uintptr
	for i := 0; i < len(m); i += size {
		pages = append(pages, uintptr(unsafe.Pointer(&m[i])))
	}
	at := make([]int32, len(pages))
	_, _, errno := unix.Syscall6(unix.SYS_MOVE_PAGES, 0, uintptr(len(pages)), uintptr(unsafe.Pointer(&pages[0])), 0, uintptr(unsafe.Pointer(&at[0])), 0)
	if errno != 0 {
		t.Skipf("this kernel does not tell where pages lie: %v", errno)
	}
	return at
}

// What a thread reads of a matrix lies on its own memory node, but for the large pages
// that it shares with a neighbour's piece. On a machine of one node everything does.
func TestWeightsLieNear(t *testing.T) {
	cpus, nodes := nodesHere(t)
	b, err := New(Options{CPUs: cpus, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const in = 2048
	out := 16 * 128 * len(cpus) // 8 MiB a thread
	made, err := b.Weight(kernels.Source{Name: "w", Type: kernels.BF16, Out: out, In: in, Data: make([]byte, 2*out*in)}, kernels.FormatBF16)
	if err != nil {
		t.Fatal(err)
	}
	w := made.(*weight)
	ordered, _ := byNode(cpus, nodes)
	for thread, cpu := range ordered {
		first, last := part(w.tiles, thread, len(cpus))
		size := len(w.data) / w.tiles
		home := int32(nodes[slices.Index(cpus, cpu)])
		count, near := map[int32]int{}, 0
		all := nodesOf(t, w.data[first*size:last*size])
		for _, node := range all {
			count[node]++
			if node == home {
				near++
			}
		}
		t.Logf("thread %d, processor %d of node %d: pages by node: %v", thread, cpu, home, count)
		if share := float64(near) / float64(len(all)); share < 0.7 {
			t.Errorf("thread %d of node %d has %.0f %% of its pages there: %v", thread, home, 100*share, count)
		}
	}
}
