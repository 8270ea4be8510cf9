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
	only := flag.Bool("spirv", false, "only SPIR-V, and only what is not there yet; no check of native code")
	flag.Parse()
	dir, err := os.MkdirTemp("", "kernels-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = build(*out, dir, *only, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ahead:", err)
		os.Exit(1)
	}
}

// build writes the SPIR-V of every kernel to out, and checks its native code unless only
// SPIR-V is wanted; what an earlier version left goes.
func build(out, dir string, only bool, w io.Writer) error {
	c, err := native.Find(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var bad error
	wanted := map[string]bool{}
	for _, target := range xpu.GPUs() {
		modules := xpu.Modules(target.Tuning)
		for _, m := range modules {
			wanted[m.File()] = true
			if _, err := os.Stat(filepath.Join(out, m.File())); err == nil && only {
				continue
			}
			il, err := c.SPIRV(m.Name, m.Text, m.Options, target.Device)
			if err != nil {
				return err
			}
			if err := replace(filepath.Join(out, m.File()), il); err != nil {
				return err
			}
		}
	}
	if !only {
		for _, target := range xpu.Checked(c.Knows) {
			bad = errors.Join(bad, check(c, target, xpu.Modules(target.Tuning), w))
		}
	}
	return errors.Join(bad, sweep(out, wanted))
}

// check compiles modules for a GPU and says what came of it.
func check(c *native.Compiler, target xpu.GPU, modules []xpu.Module, w io.Writer) error {
	kernels, dpas, bytes := 0, 0, 0
	var bad error
	for _, m := range modules {
		b, err := c.Build(m.Name, m.Text, target.Options(m), target.Device)
		if err != nil {
			return err
		}
		for _, k := range b.Kernels {
			if k.Private {
				bad = errors.Join(bad, fmt.Errorf("%s for %s keeps registers in memory", k.Name, target.Device))
			}
			kernels, dpas, bytes = kernels+1, dpas+k.DPAS, bytes+k.Bytes
		}
	}
	if bad == nil {
		fmt.Fprintf(w, "%-8s %d kernels, %d KiB, %d DPAS instructions, no private memory\n", target.Device, kernels, bytes>>10, dpas)
	}
	return bad
}

// replace writes a file whole or not at all: others may be building the worker.
func replace(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// sweep removes the files that are not wanted.
func sweep(out string, wanted map[string]bool) error {
	files, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !wanted[f.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(out, f.Name())))
		}
	}
	return err
}
