//go:build !noxpu

package launch

import (
	"fmt"

	"roundhouse/kernels"
	"roundhouse/kernels/xpu"
	"roundhouse/kernels/xpu/cl"
)

// openXPU opens the GPU that --device xpu:NAME names.
func openXPU(o *Options, name string) (kernels.Backend, error) {
	bad := func(err error) error { return fmt.Errorf("--device %s: %w", o.Device, err) }
	lib, err := cl.Load("")
	if err != nil {
		return nil, bad(err)
	}
	d, err := xpu.Find(lib, xpu.Selection{Name: name, Mask: o.GPUMask, Selector: o.GPUSelector})
	if err != nil {
		return nil, bad(err)
	}
	be, err := xpu.New(xpu.Options{Library: lib, Device: d, Memory: int64(float64(d.GlobalMemory) * o.Utilization)})
	if err != nil {
		return nil, bad(err)
	}
	return be, nil
}
