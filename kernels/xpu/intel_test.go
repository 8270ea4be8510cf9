//go:build intel

package xpu

import (
	"strings"
	"testing"

	"roundhouse/kernels/kerneltest"
)

// emulated is the device of Intel's driver as one of the GPUs that kernels ship for.
func emulated(t *testing.T, target Target) *Backend {
	t.Helper()
	lib, d := device(t)
	if !d.Has("cl_intel_required_subgroup_size") {
		t.Skipf("%s has no sub-groups of a chosen size; Intel's OpenCL driver of the CPU has", d.Name)
	}
	b, err := NewEmulated(Options{Device: d, Library: lib}, target)
	return closed(t, b, err)
}

// fromSPIRV holds a backend to the SPIR-V of this build.
func fromSPIRV(t *testing.T, b *Backend) {
	t.Helper()
	for _, how := range b.Built() {
		if !strings.HasSuffix(how, ": SPIR-V") {
			t.Errorf("built %s; go run ./kernels/xpu/ahead -spirv makes the SPIR-V of all", how)
		}
	}
}

// The kernels that ship, as SPIR-V, loaded by Intel's own driver and run with its own
// sub-groups and block reads, to the instruction of the matrix unit.
func TestShippedIntel(t *testing.T) {
	for _, target := range Targets()[:2] {
		t.Run(target.Device, func(t *testing.T) {
			t.Parallel()
			b := emulated(t, target)
			kerneltest.Run(t, b)
			fromSPIRV(t, b)
		})
	}
}

// Those of a GPU without the unit need nothing in place of it.
func TestPlainIntel(t *testing.T) {
	t.Parallel()
	b := open(t, Tuning{})
	kerneltest.Run(t, b)
	fromSPIRV(t, b)
}

// The same from source, in the versions of the language that devices without 2.0 have.
func TestSourceIntel(t *testing.T) {
	for version, target := range map[string]Target{"1.2": Targets()[2], "3.0": Targets()[1]} {
		t.Run(target.Device, func(t *testing.T) {
			t.Parallel()
			b := emulated(t, target)
			for i := range b.built.modules {
				b.built.modules[i].Text += "\n" // no SPIR-V is of this text
			}
			b.ctx.Device.Languages = []string{version}
			kerneltest.Linears(t, b)
			if target.Tuning.Lanes == 0 {
				kerneltest.Attentions(t, b)
			}
		})
	}
}
