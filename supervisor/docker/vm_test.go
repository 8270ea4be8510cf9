//go:build vm

package docker

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"testing"

	"roundhouse/supervisor/driver"
	"roundhouse/worker/device"
)

// The GPUs of the virtual machine have a real driver and real nodes, on the memory nodes
// 1 and 2. A container that is given one finds its nodes, opens them, and finds no other.
func TestRealRenderNodes(t *testing.T) {
	_, d := driverFor(t)
	gpus := device.GPUs("/sys")
	if len(gpus) != 2 || gpus[0].Node != 1 || gpus[1].Node != 2 {
		t.Fatalf("this machine's GPUs: %+v", gpus)
	}
	for i, g := range gpus {
		if err := d.agree(t.Context()); err != nil {
			t.Fatal(err)
		}
		if *rootless { // whose containers are in none of this machine's groups
			for _, node := range []string{g.Render, g.Card} {
				if err := os.Chmod(node, 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
		spec := specFor([]string{"1", "2"}[i], 1)
		spec.Place = driver.Place{NUMA: []int{g.Node}, GPUs: []driver.GPU{{ID: g.PCI, Vendor: "intel", Render: g.Render, Card: g.Card}}}
		if err := d.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		list, err := d.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(list, func(i driver.Instance) bool { return i.ID == spec.ID() })
		until(t, "it answers", func() bool { return healthy(list[at].URL) })
		res, err := http.Get(list[at].URL + "/inside?dir=/dev/dri")
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Files []string
			Mems  string
		}
		err = json.NewDecoder(res.Body).Decode(&v)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: it finds %q and is on the memory of %s", g.PCI, v.Files, v.Mems)
		for _, node := range []string{g.Render, g.Card} {
			if !slices.Contains(v.Files, node) {
				t.Errorf("%s: %s is not there or may not be opened", g.PCI, node)
			}
		}
		if other := gpus[1-i]; slices.Contains(v.Files, other.Render) || slices.Contains(v.Files, other.Card) {
			t.Errorf("%s: it finds what is the other's", g.PCI)
		}
		if d.can().Confines && v.Mems != device.FormatList([]int{g.Node}) {
			t.Errorf("%s: it is on the memory of %s", g.PCI, v.Mems)
		}
	}
}
