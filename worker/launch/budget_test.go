//go:build !noxpu

package launch

import (
	"testing"

	"roundhouse/kernels/xpu/cl"
)

// A worker takes a share of what the driver says, or of what the flag says where the driver
// is wrong, as that of a processor's GPU, which has all of the machine's memory.
func TestBudget(t *testing.T) {
	f := func(args []string, want int64) {
		t.Helper()
		o, err := ParseServe(args, func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		if got := budget(&o, cl.Device{GlobalMemory: 32 << 30}); got != want {
			t.Errorf("%v: %d bytes; want %d", args, got, want)
		}
	}
	f([]string{"--device", "xpu", "--gpu-memory-utilization", "0.5"}, 16<<30)
	f([]string{"--device", "xpu", "--gpu-memory-utilization", "0.5", "--device-memory-bytes", "8589934592"}, 4<<30)
}
