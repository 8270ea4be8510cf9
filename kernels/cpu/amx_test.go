//go:build linux && amd64 && !purego

package cpu_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"roundhouse/kernels/cpu"
	"roundhouse/kernels/kerneltest"
)

var emulated = flag.Bool("amx.emulated", false, "amxrun does what AMX would do")

// The AMX kernels give the bits of the portable instruction set and pass the conformance
// suite. Where the machine has AMX, TestLevels and TestSameBits show it; where
// it has AVX-512 alone, this test runs itself under amxrun.
func TestAMX(t *testing.T) {
	if *emulated {
		t.Run("Shapes", cpu.EachAMXShape)
		b := open(t, cpu.Options{Threads: 2, ISA: "avx512"})
		b.UseAMX()
		b.ShareAll()
		kerneltest.Run(t, b)
		kerneltest.Equal(t, b, open(t, cpu.Options{Threads: 1, ISA: "go"}))
		return
	}
	if levels := cpu.ISAs(); slices.Contains(levels, "amx") || !slices.Contains(levels, "avx512") || race {
		return
	}
	amxrun := filepath.Join(t.TempDir(), "amxrun")
	if out, err := exec.Command("go", "build", "-o", amxrun, "./amxrun").CombinedOutput(); err != nil {
		t.Fatalf("go build ./amxrun: %v\n%s", err, out)
	}
	if out, err := exec.Command(amxrun, os.Args[0], "-test.run=^TestAMX$", "-test.v", "-amx.emulated").CombinedOutput(); err != nil {
		t.Fatalf("under amxrun: %v\n%s", err, out)
	}
}
