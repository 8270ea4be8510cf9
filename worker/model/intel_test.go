//go:build intel

package model

import (
	"testing"

	"roundhouse/kernels/xpu"
)

// TestShippedXPU is TestGoldenXPU and TestFormatsXPU with the kernels of GPUs that have a
// matrix unit, on Intel's OpenCL driver of the CPU.
func TestShippedXPU(t *testing.T) {
	for _, target := range xpu.Targets()[:2] {
		t.Run(target.Device, func(t *testing.T) {
			t.Parallel()
			be := newXPU(t, func(o xpu.Options) (*xpu.Backend, error) { return xpu.NewEmulated(o, target) })
			goldenXPU(t, be)
			formatsXPU(t, be)
		})
	}
}
