//go:build !noxpu

package launch

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"roundhouse/kernels"
	"roundhouse/kernels/measure"
	"roundhouse/kernels/xpu"
	"roundhouse/kernels/xpu/cl"
	"roundhouse/worker/device"
)

// gpu is a backend on a GPU that this process has for itself.
type gpu struct {
	*xpu.Backend
	claim io.Closer // nil: nothing to hold
}

// Close gives the device back, then lets others have it.
func (g gpu) Close() error {
	err := g.Backend.Close()
	if g.claim != nil {
		err = errors.Join(err, g.claim.Close())
	}
	return err
}

// openXPU opens the GPU that --device xpu:NAME names.
func openXPU(o *Options, name string) (kernels.Backend, error) {
	lib, d, err := findXPU(o, name)
	if err == nil {
		var be kernels.Backend
		if be, err = takeXPU(xpu.Options{Library: lib, Device: d, Memory: budget(o, d), Cache: o.KernelDir}, "/sys", "/proc"); err == nil {
			return be, nil
		}
	}
	return nil, fmt.Errorf("--device %s: %w", o.Device, err)
}

// addressOf is the PCI address of the GPU that a name stands for, as OpenCL sees it; empty
// where it does not tell.
func addressOf(o *Options, name string) string {
	_, d, err := findXPU(o, name)
	if err != nil {
		return "" // told when the device is opened
	}
	return d.PCI
}

// budget is the bytes of a GPU that may be taken: a share of what its driver says, or of
// what --device-memory-bytes says where the driver is wrong, as for a GPU that shares the
// machine's memory.
func budget(o *Options, d cl.Device) int64 {
	all := int64(d.GlobalMemory)
	if o.DeviceBytes > 0 {
		all = o.DeviceBytes
	}
	return int64(float64(all) * o.Utilization)
}

func findXPU(o *Options, name string) (*cl.Library, cl.Device, error) {
	lib, err := cl.Load("")
	if err != nil {
		return nil, cl.Device{}, err
	}
	d, err := xpu.Find(lib, xpu.Selection{Name: name, Mask: o.GPUMask, Selector: o.GPUSelector})
	return lib, d, err
}

// takeXPU claims a device, where it has a render node, and opens it.
func takeXPU(o xpu.Options, sysfs, proc string) (kernels.Backend, error) {
	var claim io.Closer
	gpus := device.GPUs(sysfs)
	if i := slices.IndexFunc(gpus, func(g device.GPU) bool { return g.PCI == o.Device.PCI && g.Render != "" }); i >= 0 {
		var err error
		if claim, err = device.Claim(gpus[i].Render, gpus[i].PCI, proc); err != nil {
			return nil, err
		}
	}
	be, err := xpu.New(o)
	if err != nil {
		if claim != nil {
			err = errors.Join(err, claim.Close())
		}
		return nil, err
	}
	return gpu{be, claim}, nil
}

// Tune measures what the kernels of a GPU may be compiled with and stores the fastest for
// the next start. It prints each measurement to w.
func Tune(name string, getenv func(string) string, m measure.Options, w io.Writer) error {
	o, err := ParseServe([]string{"--device", name}, getenv)
	if err != nil {
		return err
	}
	if o.KernelDir == "" {
		return errors.New("there is no folder to keep a tuning in; set XDG_CACHE_HOME or HOME")
	}
	lib, d, err := findXPU(&o, strings.TrimPrefix(strings.TrimPrefix(name, "xpu"), ":"))
	if err != nil {
		return fmt.Errorf("--device %s: %w", name, err)
	}
	began := time.Now()
	score := func(t xpu.Tuning, kind measure.Kind) (float64, error) {
		be, err := takeXPU(xpu.Options{Library: lib, Device: d, Tuning: t, Cache: o.KernelDir}, "/sys", "/proc")
		if err != nil {
			return 0, err
		}
		defer be.Close()
		m.Kinds, m.Apart = []measure.Kind{kind}, true
		var all []measure.Figures
		err = measure.Kernels(be, m, func(f measure.Figures) { all = append(all, f) })
		return measure.Total(all), err
	}
	best, err := xpu.Tune(d, score, func(name string, value int, s float64) {
		fmt.Fprintf(w, "%-8s %2d  %10.1f µs\n", name, value, s*1e6)
	})
	if err != nil {
		return err
	}
	path, err := xpu.StoreTuning(o.KernelDir, d, best)
	if err != nil {
		return fmt.Errorf("the tuning is not kept: %w", err)
	}
	fmt.Fprintf(w, "%s: %s, after %.0f seconds; kept in %s, used at the next start\n", d.Name, best, time.Since(began).Seconds(), path)
	return nil
}
