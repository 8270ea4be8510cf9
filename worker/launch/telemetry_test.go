package launch

import (
	"os"
	"path/filepath"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
	"roundhouse/worker/metrics"
)

// fakeGPU is a backend that says which device it is.
type fakeGPU struct{ kernels.Backend }

func (fakeGPU) Identity() (name, driver, pci string) { return "Arc A770", "24.1", "0000:18:00.0" }

// DeviceMemory stands in where sysfs does not tell.
func (fakeGPU) DeviceMemory() int64 { return 16000000000 }

func TestDeviceMetrics(t *testing.T) {
	sysfs := t.TempDir()
	for name, text := range map[string]string{
		"vendor": "0x8086", "class": "0x030000", "device": "0xd750",
		"drm/card0/gt/gt0/rps_act_freq_mhz": "2400", "hwmon/hwmon1/temp1_input": "61500",
	} {
		path := filepath.Join(sysfs, "bus/pci/devices/0000:18:00.0", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var text metrics.Text
	deviceMetrics(fakeGPU{}, sysfs, t.TempDir())(&text)
	want := `# HELP roundhouse_device_info The device that this worker computes on, and its driver's version.
# TYPE roundhouse_device_info gauge
roundhouse_device_info{device="Arc A770",pci="0000:18:00.0",driver="24.1"} 1.0
# HELP roundhouse_device_memory_total_bytes Memory of the device.
# TYPE roundhouse_device_memory_total_bytes gauge
roundhouse_device_memory_total_bytes{device="Arc A770",pci="0000:18:00.0"} 16000000000.0
# HELP roundhouse_device_frequency_hertz Clock of the device.
# TYPE roundhouse_device_frequency_hertz gauge
roundhouse_device_frequency_hertz{device="Arc A770",pci="0000:18:00.0"} 2400000000.0
# HELP roundhouse_device_temperature_celsius Temperature of the chip.
# TYPE roundhouse_device_temperature_celsius gauge
roundhouse_device_temperature_celsius{device="Arc A770",pci="0000:18:00.0"} 61.5
`
	if got := string(text.Bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if deviceMetrics(ref.New(), sysfs, t.TempDir()) != nil {
		t.Error("a CPU has metrics of a device")
	}
}
