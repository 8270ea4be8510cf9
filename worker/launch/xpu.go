package launch

import (
	"fmt"

	"roundhouse/kernels"
	"roundhouse/kernels/xpu"
	"roundhouse/kernels/xpu/cl"
	"roundhouse/worker/model"
)

// openXPU opens the GPU that --device xpu:NAME names.
func openXPU(o *Options, name string) (kernels.Backend, error) {
	bad := func(err error) error { return fmt.Errorf("--device %s: %w", o.Device, err) }
	lib, err := cl.Load("")
	if err != nil {
		return nil, bad(err)
	}
	s := o.GPU
	s.Name = name
	d, err := xpu.Find(lib, s)
	if err != nil {
		return nil, bad(err)
	}
	be, err := xpu.New(xpu.Options{Library: lib, Device: d, Memory: int64(float64(d.GlobalMemory) * o.Utilization)})
	if err != nil {
		return nil, bad(err)
	}
	return be, nil
}

// deviceBytes is what a device has left for keys and values once weights and the
// activations of the largest step are there; ok is false for host memory, whose
// budget is another.
func deviceBytes(o *Options, m *model.Model, be kernels.Backend) (bytes int64, ok bool) {
	d, ok := be.(interface{ Free() int64 })
	if !ok {
		return 0, false
	}
	cfg := m.Config()
	// A step holds a few values of its widest layer and one of the vocabulary.
	step := int64(o.MaxBatched)*int64(cfg.Hidden)*64 + 4*int64(o.MaxSeqs)*int64(cfg.Vocab)
	return d.Free() - m.WeightBytes(format(o)) - step, true
}
