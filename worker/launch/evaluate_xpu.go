//go:build !noxpu

package launch

import (
	"errors"
	"strconv"
	"strings"

	"roundhouse/kernels/measure"
	"roundhouse/kernels/xpu"
	"roundhouse/kernels/xpu/cl"
	"roundhouse/kernels/xpu/transfer"
)

// Cards lists the GPUs that OpenCL offers, as --device names them, or the OpenCL drivers
// of the processor for "xpu:cpu", and what measures the ways between them. A machine
// without OpenCL has none.
func Cards(name string, getenv func(string) string, t measure.TransferOptions) (names []string, time func(func(measure.Transfer)) error, err error) {
	o, err := ParseServe([]string{"--device", name}, getenv)
	if err != nil {
		return nil, nil, err
	}
	lib, err := cl.Load("")
	if errors.Is(err, cl.ErrNoLibrary) && name == "xpu" {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	only := strings.TrimPrefix(strings.TrimPrefix(name, "xpu"), ":")
	devices, err := xpu.All(lib, xpu.Selection{Name: only, Mask: o.GPUMask, Selector: o.GPUSelector})
	if err != nil {
		return nil, nil, err
	}
	if only != "" && only != "cpu" { // one of them
		d, err := xpu.Find(lib, xpu.Selection{Name: only, Mask: o.GPUMask, Selector: o.GPUSelector})
		if err != nil {
			return nil, nil, err
		}
		devices = []cl.Device{d}
	}
	if len(devices) == 0 {
		return nil, nil, nil
	}
	for i, d := range devices {
		switch {
		case only == "cpu":
			names = []string{"xpu:cpu"} // --device knows one driver of the processor
		case d.PCI != "":
			names = append(names, "xpu:"+d.PCI)
		default:
			names = append(names, "xpu:"+strconv.Itoa(i))
		}
	}
	return names, func(report func(measure.Transfer)) error { return transfer.Measure(lib, devices, t, report) }, nil
}
