// Command ahead builds the XPU backend's kernels ahead of time with Intel's ocloc: native
// code for each GPU that it knows, as a check (registers that lie in memory are an error),
// and SPIR-V into kernels/xpu/kernels/spirv, which later builds of the worker embed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"roundhouse/kernels/xpu"
	"roundhouse/kernels/xpu/native"
)

func main() {
	out := flag.String("out", "kernels/xpu/kernels/spirv", "`folder` for SPIR-V")
	flag.Parse()
	if err := build(*out, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ahead:", err)
		os.Exit(1)
	}
}

// build checks every kernel and writes the SPIR-V of all; what an earlier version left
// goes.
func build(out string, w io.Writer) error {
	dir, err := os.MkdirTemp("", "kernels-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := native.Find(dir)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var bad error
	for _, target := range xpu.Targets() {
		kernels, dpas, bytes := 0, 0, 0
		for _, m := range xpu.Modules(target.Tuning) {
			b, err := c.Build(m.Name, m.Text, m.Options, target.Device)
			if err != nil {
				return err
			}
			for _, k := range b.Kernels {
				if k.Private {
					bad = errors.Join(bad, fmt.Errorf("%s for %s keeps registers in memory", k.Name, target.Device))
				}
				kernels, dpas, bytes = kernels+1, dpas+k.DPAS, bytes+k.Bytes
			}
			il, err := c.SPIRV(m.Name, m.Text, m.Options, target.Device)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(out, m.File()), il, 0o644); err != nil {
				return err
			}
		}
		fmt.Fprintf(w, "%-8s %d kernels, %d KiB, %d DPAS instructions, no private memory\n", target.Device, kernels, bytes>>10, dpas)
	}
	return bad
}
