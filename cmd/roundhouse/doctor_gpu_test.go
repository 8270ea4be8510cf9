package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What doctor says of GPUs, their driver and who shares them, with the remedy.
func TestDoctorGPUs(t *testing.T) {
	const pci = "0000:18:00.0"
	root := t.TempDir()
	write := func(files map[string]string) {
		t.Helper()
		for name, text := range files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	gpu := "sys/bus/pci/devices/" + pci + "/"
	write(map[string]string{
		gpu + "vendor": "0x8086", gpu + "class": "0x030000", gpu + "device": "0x56a0", gpu + "drm/card0/lmem_total_bytes": "17179869184",
		gpu + "hwmon/hwmon1/temp1_input": "61000", gpu + "drm/card0/gt/gt0/rps_act_freq_mhz": "2400",
	})
	if err := os.Symlink("../../../bus/pci/drivers/i915", filepath.Join(root, gpu, "driver")); err != nil {
		t.Fatal(err)
	}
	var refused error
	look := func() string {
		d := &doctor{root: root, sysfs: filepath.Join(root, "sys"), proc: filepath.Join(root, "proc")}
		d.facts.access = func(string, uint32) error { return refused }
		d.devices()
		var text string
		for _, f := range d.findings {
			text += fmt.Sprintf("%s %s: %s → %s\n", f.State, f.Check, f.Text, f.Action)
		}
		return text
	}
	f := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if got := look(); !strings.Contains(got, w) {
				t.Errorf("doctor says\n%s\nwant %q", got, w)
			}
		}
	}
	f("Arc A770, driver i915", "no worker can run on it") // without a render node
	write(map[string]string{gpu + "drm/renderD128/dev": "226:128"})
	f("2400 MHz, 61 °C", "warn opencl: the OpenCL library is not installed: our own engine cannot use the GPU → install ocl-icd-libopencl1")
	write(map[string]string{"usr/lib/x86_64-linux-gnu/libOpenCL.so.1": "", "etc/OpenCL/vendors/pocl.icd": "libpocl.so"})
	f("no OpenCL driver of Intel's is installed (there are pocl.icd)", "→ install intel-opencl-icd")
	write(map[string]string{"etc/OpenCL/vendors/intel.icd": "libigdrcl.so"})
	f("ok opencl: library and driver are there")
	refused = os.ErrPermission
	f("this user may not open /dev/dri/renderD128 → usermod -aG render USER")
	refused = nil
	info := "drm-client-id:\t%d\ndrm-pdev:\t" + pci + "\ndrm-resident-local0:\t1 GiB"
	write(map[string]string{"proc/10/fdinfo/3": fmt.Sprintf(info, 1), "proc/11/fdinfo/3": fmt.Sprintf(info, 2)})
	f("2.0 GiB used", "warn gpu: 0000:18:00.0: the processes 10, 11 hold memory of it → give each worker a GPU of its own")
}
