package cl

import (
	"encoding/binary"
	"strings"
	"testing"
)

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

// What a device says of the language, in the form of OpenCL 3.0 and in the one before.
func TestLanguages(t *testing.T) {
	f := func(one string, versions []uint32, want string) {
		t.Helper()
		var list []byte
		for _, v := range versions {
			list = append(binary.LittleEndian.AppendUint32(list, v), make([]byte, 64)...)
		}
		if got := strings.Join(languages(one, list), " "); got != want {
			t.Errorf("%q, %x: %s; want %s", one, versions, got, want)
		}
	}
	f("OpenCL C 1.2 ", []uint32{1<<22 | 2<<12, 3 << 22}, "1.2 3.0") // NVIDIA's
	f("OpenCL C 3.0", []uint32{1<<22 | 2<<12, 2 << 22, 3 << 22}, "1.2 2.0 3.0")
	f("OpenCL C 2.0 PoCL", nil, "1.2 2.0")
	f("OpenCL C 1.2", nil, "1.2")
	f("", nil, "")
}
