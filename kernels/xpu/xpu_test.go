//go:build pocl || intel

package xpu

import (
	"testing"

	"roundhouse/kernels/kerneltest"
	"roundhouse/kernels/xpu/cl"
)

// device is the first OpenCL device; PoCL makes one of every CPU.
func device(t testing.TB) (*cl.Library, cl.Device) {
	t.Helper()
	lib, err := cl.Load("")
	if err != nil {
		t.Skipf("%v; for tests the package pocl-opencl-icd is enough", err)
	}
	devices, err := lib.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if len(devices) == 0 {
		t.Skip("no OpenCL driver; for tests the package pocl-opencl-icd is enough")
	}
	return lib, devices[0]
}

// open uses it.
func open(t testing.TB, tuning Tuning) *Backend {
	t.Helper()
	lib, d := device(t)
	b, err := New(Options{Device: d, Library: lib, Tuning: tuning})
	return closed(t, b, err)
}

// closed closes what New or NewEmulated made when the test ends.
func closed(t testing.TB, b *Backend, err error) *Backend {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestConformance(t *testing.T) { kerneltest.Run(t, open(t, Tuning{})) }

// The matrix unit's lane layouts, computed without one: what runs here is what the
// GPU runs, but for the instruction itself.
func TestMatrixUnit(t *testing.T) {
	for _, unit := range []Tuning{
		{Split: 2, Rows: 4, Queries: 4, Lanes: 8, Tiles: 1, Columns: 2},
		{Split: 2, Rows: 4, Queries: 4, Lanes: 16, Tiles: 2, Columns: 1},
	} {
		t.Run(unit.String(), func(t *testing.T) { kerneltest.Linears(t, open(t, unit)) })
	}
}

// More heads share a head of keys than a group serves.
func TestFewQueries(t *testing.T) {
	kerneltest.Attentions(t, open(t, Tuning{Split: 2, Rows: 4, Queries: 2}))
}

// Where the room for splits holds those of one tile alone, attention goes over the rows
// of a step tile by tile.
func TestLittleRoom(t *testing.T) {
	b := open(t, Tuning{})
	b.mostParts = 1
	kerneltest.Attentions(t, b)
}
