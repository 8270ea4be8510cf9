//go:build pocl || intel

package transfer

import (
	"testing"
	"time"

	"roundhouse/kernels/measure"
	"roundhouse/kernels/xpu"
	"roundhouse/kernels/xpu/cl"
)

// Every way of a machine is measured, and what arrives is what was sent. Two devices of
// one driver stand for two cards: the drivers here make one of the processor, which is
// then listed twice.
func TestMeasure(t *testing.T) {
	lib, err := cl.Load("")
	if err != nil {
		t.Skipf("%v; for tests the package pocl-opencl-icd is enough", err)
	}
	devices, err := xpu.All(lib, xpu.Selection{Name: "cpu"})
	if err != nil || len(devices) == 0 {
		t.Fatalf("%v, %v", devices, err)
	}
	two := []cl.Device{devices[0], devices[0]}
	ways := map[string]int{}
	o := measure.TransferOptions{Sizes: []int64{4 << 10, 1 << 20}, Time: time.Millisecond}
	if err := Measure(lib, two, o, func(f measure.Transfer) {
		ways[f.Way]++
		if f.Seconds <= 0 || f.Rate() <= 0 {
			t.Errorf("%+v", f)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for way, want := range map[string]int{measure.Upload: 4, measure.Download: 4, measure.Direct: 2, measure.ByHost: 2, measure.Reduce: 2} {
		if ways[way] != want {
			t.Errorf("%s: %d figures, want %d", way, ways[way], want)
		}
	}
}
