package device

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// plant writes files into a tree, in the kernel's layout.
func plant(t *testing.T, root string, files map[string]string) {
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

const testPCI = "0000:18:00.0"

// gpuTree is the sysfs of one GPU with the given files.
func gpuTree(t *testing.T, files map[string]string) (sysfs, proc string, gpu GPU) {
	t.Helper()
	sysfs, proc = t.TempDir(), t.TempDir()
	all := map[string]string{"vendor": "0x8086", "class": "0x030000", "device": "0x56a0", "numa_node": "0", "drm/renderD128/dev": "226:128"}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		plant(t, sysfs, map[string]string{"bus/pci/devices/" + testPCI + "/" + name: text})
	}
	return sysfs, proc, GPUs(sysfs)[0]
}

// said is a reading as text, known figures alone.
func said(r Reading) string {
	var out []string
	for _, f := range r.Figures() {
		out = append(out, fmt.Sprintf("%s=%.6g", strings.TrimSuffix(f.Name, "_total"), f.Value))
	}
	return strings.Join(out, " ")
}

// Intel's i915 outside the kernel's tree, which tells the memory.
func TestMeterOfI915(t *testing.T) {
	sysfs, proc, gpu := gpuTree(t, map[string]string{
		"drm/card0/lmem_total_bytes":        "16225243136",
		"drm/card0/gt/gt0/rps_act_freq_mhz": "2400",
		"hwmon/hwmon4/name":                 "i915",
		"hwmon/hwmon4/energy1_input":        "500000000",
		"hwmon/hwmon4/temp1_input":          "61000",
	})
	info := "pos:\t0\ndrm-driver:\ti915\ndrm-client-id:\t%d\ndrm-pdev:\t0000:18:00.0\ndrm-total-local0:\t4 GiB\ndrm-resident-local0:\t2 GiB\n" +
		"drm-engine-render:\t%d ns\ndrm-engine-compute:\t%d ns\ndrm-engine-capacity-video:\t2\ndrm-engine-video:\t0 ns"
	plant(t, proc, map[string]string{"77/fdinfo/5": fmt.Sprintf(info, 3, 0, 1_000_000_000), "77/fdinfo/6": fmt.Sprintf(info, 3, 0, 1_000_000_000)})

	m, at := NewMeter(sysfs, proc, gpu), time.Unix(1000, 0)
	want := "memory_total_bytes=1.62252e+10 memory_used_bytes=2.14748e+09 memory_free_bytes=1.40778e+10 frequency_hertz=2.4e+09 temperature_celsius=61 energy_joules=500"
	if got := said(m.Read(at)); got != want {
		t.Errorf("the first reading:\n got %s\nwant %s", got, want)
	}

	// Two seconds later: 300 joules, and the compute engine worked for half of them.
	plant(t, sysfs, map[string]string{"bus/pci/devices/" + testPCI + "/hwmon/hwmon4/energy1_input": "800000000"})
	plant(t, proc, map[string]string{"77/fdinfo/5": fmt.Sprintf(info, 3, 10_000_000, 2_000_000_000), "77/fdinfo/6": fmt.Sprintf(info, 3, 10_000_000, 2_000_000_000)})
	r := m.Read(at.Add(2 * time.Second))
	if r.Power != 150 || r.Utilization != 0.5 {
		t.Errorf("the second reading: %s; want 150 watts and half", said(r))
	}
	if again := m.Read(at.Add(2*time.Second + time.Millisecond)); again.Power != 150 || again.Utilization != 0.5 {
		t.Errorf("a millisecond later: %s; want the same rates", said(again))
	}
}

// A card with two compute engines, as the Max 1550.
func TestMeterOfXe(t *testing.T) {
	sysfs, proc, gpu := gpuTree(t, map[string]string{
		"device":                     "0xe211",
		"resource":                   window(32 << 30),
		"drm/card1/dev":              "226:1",
		"tile0/gt0/freq0/act_freq":   "2050",
		"hwmon/hwmon2/name":          "xe",
		"hwmon/hwmon2/energy1_label": "card",
		"hwmon/hwmon2/energy1_input": "1000000",
		"hwmon/hwmon2/energy2_label": "pkg",
		"hwmon/hwmon2/energy2_input": "700000",
		"hwmon/hwmon2/temp2_label":   "pkg",
		"hwmon/hwmon2/temp2_input":   "55000",
		"hwmon/hwmon2/temp3_label":   "vram",
		"hwmon/hwmon2/temp3_input":   "68000",
		"hwmon/hwmon2/power1_max":    "190000000",
	})
	info := "drm-driver:\txe\ndrm-client-id:\t9\ndrm-pdev:\t0000:18:00.0\ndrm-resident-vram0:\t1024 MiB\ndrm-engine-capacity-ccs:\t2\ndrm-cycles-ccs:\t%d\ndrm-total-cycles-ccs:\t%d"
	plant(t, proc, map[string]string{"8/fdinfo/3": fmt.Sprintf(info, 100, 1000)})

	m, at := NewMeter(sysfs, proc, gpu), time.Unix(1000, 0)
	want := "memory_total_bytes=2.57698e+10 memory_used_bytes=1.07374e+09 memory_free_bytes=2.46961e+10 frequency_hertz=2.05e+09 temperature_celsius=55 memory_temperature_celsius=68 energy_joules=1"
	if got := said(m.Read(at)); got != want {
		t.Errorf("the first reading:\n got %s\nwant %s", got, want)
	}
	plant(t, proc, map[string]string{"8/fdinfo/3": fmt.Sprintf(info, 1700, 2000)})
	if r := m.Read(at.Add(time.Second)); r.Utilization != 0.8 || r.Power != 0 {
		t.Errorf("the second reading: %s; want 0.8 of two engines and no power", said(r))
	}
	if name := Product(gpu); name != "Arc Pro B60" {
		t.Errorf("the product is %q", name)
	}
}

// What a kernel does not tell is absent, never zero.
func TestMeterKnowsNothing(t *testing.T) {
	sysfs, proc, gpu := gpuTree(t, map[string]string{"device": "0x1234"})
	m := NewMeter(sysfs, proc, gpu)
	for i := range 2 {
		if r := m.Read(time.Unix(int64(1000+i), 0)); len(r.Figures()) != 0 || !math.IsNaN(r.Power) {
			t.Errorf("reading %d: %s; want nothing", i, said(r))
		}
	}
	if name := Product(gpu); name != "intel 0x1234" {
		t.Errorf("the product is %q", name)
	}
}
