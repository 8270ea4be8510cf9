package device

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// What fits is placed, whoever else does not, and what a worker without a place would
// have held is the others'.
func TestFit(t *testing.T) {
	m := Machine{Nodes: []Node{{MemoryBytes: 1}}, Cores: []Core{{CPUs: []int{0}}, {CPUs: []int{1}}, {CPUs: []int{2}}, {CPUs: []int{3}}}}
	for i := range 2 {
		m.GPUs = append(m.GPUs, GPU{PCI: fmt.Sprintf("0000:%02x:00.0", i+1), Vendor: "intel", Driver: "xe", Render: "/dev/dri/renderD128"})
	}
	f := func(name string, needs []Need, placed []string, lacks map[string]string) {
		t.Helper()
		places, left := m.Fit(needs)
		if got := slices.Sorted(maps.Keys(places)); !slices.Equal(got, placed) {
			t.Errorf("%s: %v have a place; want %v", name, got, placed)
		}
		got := map[string]string{}
		for id, err := range left {
			got[id] = err.Error()
		}
		if !maps.Equal(got, lacks) {
			t.Errorf("%s: %v; want %v", name, got, lacks)
		}
	}
	f("a card that is missing", []Need{{ID: "a", GPUs: []string{"0000:99:00.0"}}, {ID: "b", Count: 1}, {ID: "c"}}, []string{"b", "c"},
		map[string]string{"a": "GPU 0000:99:00.0 is not in this machine"})
	f("one card of two", []Need{{ID: "a", GPUs: []string{"0000:01:00.0", "0000:99:00.0"}}, {ID: "b", GPUs: []string{"0000:01:00.0"}}}, []string{"b"},
		map[string]string{"a": "GPU 0000:99:00.0 is not in this machine"})
	f("claimed twice", []Need{{ID: "a", GPUs: []string{"0000:01:00.0"}}, {ID: "b", GPUs: []string{"0000:01:00.0"}}}, []string{"a"},
		map[string]string{"b": "GPU 0000:01:00.0 is that of worker a already"})
	f("too many", []Need{{ID: "a", Count: 1}, {ID: "b", Count: 2}, {ID: "c", Count: 1}}, []string{"a", "c"},
		map[string]string{"b": `2 GPUs wanted, 1 free of the 2 on this machine; devices = "cpu" runs it on the CPU`})
}
