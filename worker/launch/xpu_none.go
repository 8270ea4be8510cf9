//go:build noxpu

package launch

import (
	"fmt"

	"roundhouse/kernels"
)

// openXPU says that this build has no OpenCL: one that opens a shared library needs the
// system's loader, which an image from scratch does not have.
func openXPU(o *Options, _ string) (kernels.Backend, error) {
	return nil, fmt.Errorf("--device %s: this build computes on the CPU only (tag noxpu); use --device cpu, or a build without the tag", o.Device)
}
