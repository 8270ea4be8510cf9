package xpu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/kernels/xpu/cl"
)

func TestChoose(t *testing.T) {
	a := cl.Device{Kind: cl.GPU, Name: "Arc A770", PCI: "0000:18:00.0", UUID: "00112233445566778899aabbccddeeff", Version: "OpenCL 3.0"}
	b := cl.Device{Kind: cl.GPU, Name: "Arc B60", PCI: "0000:4b:00.0", Version: "OpenCL 3.0"}
	old := cl.Device{Kind: cl.GPU, Name: "Arc A770 (old driver)", PCI: "0000:18:00.0", Version: "OpenCL 1.2"}
	pocl := cl.Device{Kind: cl.CPU, Name: "pocl"}
	empty := t.TempDir()

	f := func(all []cl.Device, s Selection, want string) {
		t.Helper()
		s.Nodes = empty
		d, err := choose(all, s)
		got := d.Name
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%+v: got %q; want %q", s, got, want)
		}
	}

	both := []cl.Device{pocl, b, old, a}
	f([]cl.Device{pocl, a}, Selection{}, "Arc A770")
	f(both, Selection{}, "there are 2 GPUs; name one, as in --device xpu:0000:18:00.0")
	f(both, Selection{Name: "0000:4B:00.0"}, "Arc B60")
	f(both, Selection{Name: "18:00.0"}, "Arc A770")
	f(both, Selection{Name: "00112233-4455-6677-8899-aabbccddeeff"}, "Arc A770")
	f(both, Selection{Name: "1"}, "Arc B60") // in the order of the addresses
	f(both, Selection{Name: "2"}, "no GPU number 2; there are 0: 0000:18:00.0 (Arc A770), 1: 0000:4b:00.0 (Arc B60)")
	f(both, Selection{Name: "0000:99:00.0"}, "no GPU 0000:99:00.0; there are")
	f(both, Selection{Mask: "1"}, "Arc A770")
	f(both, Selection{Mask: "0"}, "Arc B60")               // as the driver lists them
	f(both, Selection{Mask: "1,0", Name: "0"}, "Arc A770") // a mask does not order
	f(both, Selection{Mask: "0,0"}, "Arc B60")
	f(both, Selection{Mask: "1.1"}, "Arc A770") // a tile of a card is on the card
	f(both, Selection{Selector: "opencl:gpu:0"}, "Arc B60")
	f(both, Selection{Selector: "level_zero:1"}, "Arc A770")
	f(both, Selection{Selector: "level_zero:1.0"}, "Arc A770")
	f(both, Selection{Selector: "level_zero:0;opencl:0"}, "Arc B60")
	f(both, Selection{Selector: "LEVEL_ZERO"}, "there are 2 GPUs")
	f(both, Selection{Selector: "opencl:cpu,gpu"}, "there are 2 GPUs")
	f(both, Selection{Selector: "*:gpu.*"}, "there are 2 GPUs")
	f(both, Selection{Selector: "opencl:cpu:0"}, "hide every GPU")
	f(both, Selection{Selector: "level_zero:fpga"}, "hide every GPU")
	f(both, Selection{Selector: "*:gpu"}, "there are 2 GPUs")
	f(both, Selection{Selector: "opencl:cpu"}, "hide every GPU")
	f(both, Selection{Selector: "opencl:cpu;level_zero:0"}, "Arc B60")
	f(both, Selection{Selector: "!level_zero:0"}, "Arc A770")
	f(both, Selection{Selector: "*:gpu; !*:1"}, "Arc B60")
	f(both, Selection{Mask: "7"}, "hide every GPU")
	f(both, Selection{Name: "cpu"}, "pocl")
	f([]cl.Device{a}, Selection{Name: "cpu"}, "pocl-opencl-icd")
	f([]cl.Device{pocl}, Selection{}, "has no render node")

	// Intel's driver applies the mask itself: it shows the second card alone.
	neo := b
	neo.Vendor = "Intel(R) Corporation"
	f([]cl.Device{neo}, Selection{Mask: "1"}, "Arc B60")
	f([]cl.Device{neo}, Selection{Mask: "1", Selector: "level_zero:0"}, "Arc B60")

	// What is built into the processor is taken where it is named.
	built := cl.Device{Kind: cl.GPU, Name: "UHD 770", PCI: "0000:00:02.0", Unified: true}
	f([]cl.Device{built, a}, Selection{}, "Arc A770")
	f([]cl.Device{built, a}, Selection{Name: "0"}, "Arc A770")
	f([]cl.Device{built, a}, Selection{Name: "1"}, "UHD 770")
	f([]cl.Device{built, a}, Selection{Name: "00:02.0"}, "UHD 770")
	f([]cl.Device{built}, Selection{}, "UHD 770")
	f([]cl.Device{built, a, b}, Selection{}, "there are 3 GPUs; name one, as in --device xpu:0000:18:00.0")
}

func TestRenderNodeWithoutDriver(t *testing.T) {
	nodes := t.TempDir()
	if err := os.WriteFile(filepath.Join(nodes, "renderD128"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := choose(nil, Selection{Nodes: nodes})
	if err == nil || !strings.Contains(err.Error(), "install the driver") {
		t.Errorf("got %v", err)
	}
	_, err = choose(nil, Selection{Nodes: nodes, Mask: "3"})
	if err == nil || !strings.Contains(err.Error(), `ZE_AFFINITY_MASK="3" hides all others from Intel's driver`) {
		t.Errorf("got %v", err)
	}
	refused := func(string) error { return &os.PathError{Op: "open", Path: nodes, Err: os.ErrPermission} }
	_, err = choose(nil, Selection{Nodes: nodes, open: refused})
	if err == nil || !strings.Contains(err.Error(), "may not be opened: add this user to the group that owns it (render)") {
		t.Errorf("got %v", err)
	}
}
