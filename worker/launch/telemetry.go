package launch

import (
	"slices"
	"time"

	"roundhouse/kernels"
	"roundhouse/worker/device"
	"roundhouse/worker/metrics"
)

// deviceMetrics writes what the backend's device says of itself, for /metrics; nil for
// the CPU. What is unknown is absent.
func deviceMetrics(be kernels.Backend, sysfs, proc string) func(t *metrics.Text) {
	d, ok := be.(interface {
		Identity() (name, driver, pci string)
	})
	if !ok {
		return nil
	}
	name, driver, pci := d.Identity()
	labels := []metrics.Label{{Name: "device", Value: name}, {Name: "pci", Value: pci}}
	var meter *device.Meter
	gpus := device.GPUs(sysfs)
	if i := slices.IndexFunc(gpus, func(g device.GPU) bool { return g.PCI == pci }); i >= 0 {
		if m, ok := be.(interface{ DeviceMemory() int64 }); ok && gpus[i].MemoryBytes == 0 {
			gpus[i].MemoryBytes = m.DeviceMemory()
		}
		meter = device.NewMeter(sysfs, proc, gpus[i])
	}
	return func(t *metrics.Text) {
		t.Gauge("roundhouse_device_info", "The device that this worker computes on, and its driver's version.",
			append(slices.Clone(labels), metrics.Label{Name: "driver", Value: driver}), 1)
		if meter == nil {
			return
		}
		for _, f := range meter.Read(time.Now()).Figures() {
			kind := "gauge"
			if f.Counter {
				kind = "counter"
			}
			t.Family("roundhouse_device_"+f.Name, kind, f.Help)
			t.Sample("roundhouse_device_"+f.Name, labels, f.Value)
		}
	}
}
