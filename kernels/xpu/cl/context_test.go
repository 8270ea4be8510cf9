package cl

import "testing"

// Pages beyond what a device gives in one piece are asked for in the way of Intel's
// drivers, and of theirs alone.
func TestBufferFlags(t *testing.T) {
	f := func(d Device, size int64, want uint64) {
		t.Helper()
		if got := d.bufferFlags(size); got != want {
			t.Errorf("%s, %d bytes: flags %#x; want %#x", d.Vendor, size, got, want)
		}
	}
	arc := Device{Kind: GPU, Vendor: "Intel(R) Corporation", MaxAllocation: 4 << 30}
	f(arc, 4<<30, 1)
	f(arc, 5<<30, 1|1<<23)
	f(Device{Kind: GPU, Vendor: "NVIDIA Corporation", MaxAllocation: 4 << 30}, 5<<30, 1)
	f(Device{Kind: CPU, Vendor: "Intel(R) Corporation", MaxAllocation: 4 << 30}, 5<<30, 1)
}
