//go:build noxpu

package launch

import (
	"fmt"
	"io"

	"roundhouse/kernels"
	"roundhouse/kernels/measure"
)

// openXPU says that this build has no OpenCL: one that opens a shared library needs the
// system's loader, which an image from scratch does not have.
func openXPU(o *Options, _ string) (kernels.Backend, error) {
	return nil, noXPU(o.Device)
}

// Tune is of builds with OpenCL.
func Tune(name string, _ func(string) string, _ measure.Options, _ io.Writer) error {
	return noXPU(name)
}

// Cards are of builds with OpenCL.
func Cards(name string, _ func(string) string, _ measure.TransferOptions) ([]string, func(func(measure.Transfer)) error, error) {
	if name == "xpu" {
		return nil, nil, nil
	}
	return nil, nil, noXPU(name)
}

func addressOf(*Options, string) string { return "" }

func noXPU(device string) error {
	return fmt.Errorf("--device %s: this build computes on the CPU only (tag noxpu); use --device cpu, or a build without the tag", device)
}
