//go:build pocl

package xpu

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"roundhouse/kernels/xpu/native"
)

// Every kernel compiles to native code, none keeps registers in memory, and the
// matrix kernels really use the matrix unit: its wrong form compiles without a word. Their
// inner loops read memory in whole blocks alone.
func TestNativeCode(t *testing.T) {
	found, err := native.Find("")
	if err != nil {
		t.Skip(err)
	}
	for _, target := range Checked(found.Knows) {
		t.Run(target.Device, func(t *testing.T) {
			t.Parallel()
			c, err := native.Find(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range Modules(target.Tuning) {
				b, err := c.Build(m.Name, m.Text, target.Options(m), target.Device)
				if err != nil {
					t.Error(err)
					continue
				}
				checkKernels(t, m, b, target.Tuning)
				if target.Tuning.usesMatrix(m) {
					checkLoops(t, c, b)
				}
			}
		})
	}
}

func checkKernels(t *testing.T, m Module, b *native.Binary, tuning Tuning) {
	t.Helper()
	var names []string
	for _, k := range b.Kernels {
		names = append(names, k.Name)
		if k.Private {
			t.Errorf("%s keeps private memory outside its registers", k.Name)
		}
		if matrix := tuning.usesMatrix(m); matrix != (k.DPAS > 0) {
			t.Errorf("%s has %d DPAS instructions", k.Name, k.DPAS)
		}
	}
	want := slices.Clone(m.Kernels)
	slices.Sort(want)
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("%s: the kernels are %v; want %v", m.Name, names, want)
	}
}

func checkLoops(t *testing.T, c *native.Compiler, b *native.Binary) {
	t.Helper()
	asm, err := c.Disassemble(b)
	if errors.Is(err, native.ErrNoDisassembler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range b.Kernels {
		loops := native.MatrixLoops(asm[k.Name])
		if len(loops) != 1 {
			t.Errorf("%s: %d loops around the matrix unit; want one", k.Name, len(loops))
		}
		for _, l := range loops {
			if s := l.Scattered(); len(s) > 0 {
				t.Errorf("%s: its inner loop asks memory for %s", k.Name, strings.Join(s, ", "))
			}
		}
	}
}

// What ships as SPIR-V gives the same native code as the source, with the matrix unit.
func TestSPIRV(t *testing.T) {
	c, err := native.Find(t.TempDir())
	if err != nil {
		t.Skip(err)
	}
	target := GPUs()[0]
	for _, m := range Modules(target.Tuning) {
		if m.Name != "linear_int4_many" && m.Name != "sample" {
			continue
		}
		il, err := c.SPIRV(m.Name, m.Text, m.Options, target.Device)
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.FromSPIRV(m.Name, il, target.Options(m), target.Device)
		if err != nil {
			t.Fatal(err)
		}
		checkKernels(t, m, b, target.Tuning)
	}
}
