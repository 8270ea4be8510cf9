package device

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// card is one device of a machine, in the form in which people have listed theirs.
type card struct {
	pci, driver  string
	card, render int // numbers of its nodes; -1: none
	files        map[string]string
}

// seat makes a machine of cards.
func seat(t *testing.T, cards ...card) (sysfs, proc string) {
	t.Helper()
	sysfs, proc = t.TempDir(), t.TempDir()
	for _, c := range cards {
		dir := "bus/pci/devices/" + c.pci + "/"
		files := map[string]string{dir + "vendor": "0x8086", dir + "class": "0x030000", dir + "numa_node": "-1"}
		if c.card >= 0 {
			files[fmt.Sprintf("%sdrm/card%d/dev", dir, c.card)] = fmt.Sprintf("226:%d", c.card)
			files[fmt.Sprintf("%sdrm/renderD%d/dev", dir, c.render)] = fmt.Sprintf("226:%d", c.render)
		}
		for name, text := range c.files {
			files[dir+name] = text
		}
		plant(t, sysfs, files)
		if c.driver != "" {
			if err := os.Symlink("../../drivers/"+c.driver, filepath.Join(sysfs, dir, "driver")); err != nil {
				t.Fatal(err)
			}
		}
	}
	return sysfs, proc
}

// what says what was made of each device.
func what(gpus []GPU) string {
	var out []string
	for _, g := range gpus {
		out = append(out, fmt.Sprintf("%s %s %s %s %dG %v", g.PCI, Product(g), filepath.Base(g.Card), filepath.Base(g.Render), g.MemoryBytes>>30, g.Usable()))
	}
	return strings.Join(out, "\n")
}

// Machines built from what owners of cards, logs and other programs' tests have
// shown of them in public; what none of these shows is as the kernel documents it.
func TestListedMachines(t *testing.T) {
	f := func(name, want string, cards ...card) {
		t.Helper()
		sysfs, _ := seat(t, cards...)
		if got := what(GPUs(sysfs)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
	f("A770 with i915 of a kernel of 2026: no memory in sysfs, no node known", "0000:03:00.0 Arc A770 card0 renderD128 16G true",
		card{"0000:03:00.0", "i915", 0, 128, map[string]string{"device": "0x56a0", "local_cpulist": "0-23", "resource": window(16 << 30), "drm/card0/gt_act_freq_mhz": "0"}})
	f("A770 of 8 GB", "0000:03:00.0 Arc A770 card0 renderD128 8G true",
		card{"0000:03:00.0", "i915", 0, 128, map[string]string{"device": "0x56a0", "resource": window(8 << 30)}})
	f("A750 whose window the board left at 1 GiB", "0000:03:00.0 Arc A750 card0 renderD128 8G true",
		card{"0000:03:00.0", "xe", 0, 128, map[string]string{"device": "0x56a1", "resource": window(1 << 30)}})
	f("B580 whose window is 16 GiB, and one whose window stayed at 256 MiB", "0000:03:00.0 Arc B580 card1 renderD128 12G true\n0000:29:00.0 Arc B580 card0 renderD129 12G true",
		card{"0000:03:00.0", "xe", 1, 128, map[string]string{"device": "0xe20b", "resource": window(16 << 30)}},
		card{"0000:29:00.0", "xe", 0, 129, map[string]string{"device": "0xe20b", "resource": window(256 << 20)}})
	f("B60 whose window is 32 GiB", "0000:07:00.0 Arc Pro B60 card0 renderD128 24G true",
		card{"0000:07:00.0", "xe", 0, 128, map[string]string{"device": "0xe211", "resource": window(32 << 30)}})
	f("two B70 whose cards and render nodes are numbered in opposite orders", "0000:43:00.0 Arc Pro B70 card1 renderD128 32G true\n0000:47:00.0 Arc Pro B70 card0 renderD129 32G true",
		card{"0000:43:00.0", "xe", 1, 128, map[string]string{"device": "0xe223", "resource": window(32 << 30)}},
		card{"0000:47:00.0", "xe", 0, 129, map[string]string{"device": "0xe223", "resource": window(32 << 30)}})
	f("a card beside the processor's own, which comes first", "0000:00:02.0 intel 0xa780 card0 renderD128 0G false\n0000:03:00.0 Arc A770 card1 renderD129 16G true",
		card{"0000:00:02.0", "i915", 0, 128, map[string]string{"device": "0xa780", "resource": window(256 << 20)}},
		card{"0000:03:00.0", "i915", 1, 129, map[string]string{"device": "0x56a0", "resource": window(16 << 30)}})
	f("shares of the processor's own for virtual machines", "0000:00:02.0 intel 0x46d0 card0 renderD128 0G false",
		card{"0000:00:02.0", "i915", 0, 128, map[string]string{"device": "0x46d0"}},
		card{"0000:00:02.1", "i915", 1, 129, map[string]string{"device": "0x46d0", "physfn/vendor": "0x8086"}},
		card{"0000:00:02.2", "vfio-pci", -1, -1, map[string]string{"device": "0x46d0", "physfn/vendor": "0x8086"}})
	f("a card that a virtual machine has on its first bus", "0000:00:10.0 Arc Pro B60 card0 renderD128 24G true",
		card{"0000:00:10.0", "xe", 0, 128, map[string]string{"device": "0xe211", "resource": window(32 << 30)}})
	f("one of two cards is kept for a virtual machine", "0000:03:00.0 Arc A770 . . 16G false\n0000:07:00.0 Arc A770 card0 renderD128 16G true",
		card{"0000:03:00.0", "vfio-pci", -1, -1, map[string]string{"device": "0x56a0", "resource": window(16 << 30)}},
		card{"0000:07:00.0", "i915", 0, 128, map[string]string{"device": "0x56a0", "resource": window(16 << 30)}})
	f("a card that its kernel does not vouch for, and one of a kind that came later", "0000:0c:00.0 Arc A750 . . 8G false\n0000:18:00.0 intel 0xd750 card0 renderD128 0G true",
		card{"0000:0c:00.0", "", -1, -1, map[string]string{"device": "0x56a1"}},
		card{"0000:18:00.0", "xe", 0, 128, map[string]string{"device": "0xd750", "resource": window(64 << 30)}})
}

// What the sensors and clients of a card say twice, two seconds apart, in the words of
// kernels as people have shown them.
func TestListedSensors(t *testing.T) {
	f := func(name string, c card, before, after map[string]string, clients [2]string, want string) {
		t.Helper()
		sysfs, proc := seat(t, c)
		m, at := NewMeter(sysfs, proc, GPUs(sysfs)[0]), time.Unix(1000, 0)
		for i, files := range []map[string]string{before, after} {
			for path, text := range files {
				plant(t, sysfs, map[string]string{"bus/pci/devices/" + c.pci + "/" + path: text})
			}
			if clients[i] != "" {
				plant(t, proc, map[string]string{"4711/fdinfo/8": clients[i]})
			}
			if got := said(m.Read(at.Add(time.Duration(i) * 2 * time.Second))); i == 1 && got != want {
				t.Errorf("%s:\n got %s\nwant %s", name, got, want)
			}
		}
	}
	b580 := card{"0000:03:00.0", "xe", 1, 128, map[string]string{"device": "0xe20b", "resource": window(16 << 30)}}
	sensors := map[string]string{
		"tile0/gt0/freq0/act_freq": "1350", "tile0/gt0/freq0/cur_freq": "1317", "tile0/gt1/freq0/act_freq": "1200",
		"tile0/gt0/gtidle/idle_residency_ms": "5000",
		"hwmon/hwmon3/name":                  "xe", "hwmon/hwmon3/power1_cap": "200000000", "hwmon/hwmon3/power1_crit": "400000000", "hwmon/hwmon3/fan1_input": "1156",
		"hwmon/hwmon3/energy1_input": "500000000", "hwmon/hwmon3/energy1_label": "card", "hwmon/hwmon3/energy2_input": "300000000", "hwmon/hwmon3/energy2_label": "pkg",
		"hwmon/hwmon3/temp2_input": "51000", "hwmon/hwmon3/temp2_label": "pkg", "hwmon/hwmon3/temp3_input": "54000", "hwmon/hwmon3/temp3_label": "vram",
		"hwmon/hwmon3/temp4_input": "52000", "hwmon/hwmon3/temp4_label": "mctrl", "hwmon/hwmon3/temp5_input": "56000", "hwmon/hwmon3/temp5_label": "pcie",
		"hwmon/hwmon3/temp6_input": "53000", "hwmon/hwmon3/temp6_label": "vram_ch_0", "hwmon/hwmon3/temp17_input": "58000", "hwmon/hwmon3/temp17_label": "vram_ch_11",
	}
	client := "drm-driver:\txe\ndrm-client-id:\t36\ndrm-pdev:\t0000:03:00.0\ndrm-total-system:\t0\ndrm-total-gtt:\t264 KiB\ndrm-resident-gtt:\t264 KiB\n" +
		"drm-total-vram0:\t3145728 KiB\ndrm-shared-vram0:\t16 MiB\ndrm-active-vram0:\t0\ndrm-resident-vram0:\t3 GiB\ndrm-resident-stolen:\t8 MiB\n" +
		"drm-cycles-rcs:\t0\ndrm-total-cycles-rcs:\t%d\ndrm-cycles-ccs:\t%d\ndrm-total-cycles-ccs:\t%[1]d\n"
	const card580 = "memory_total_bytes=1.28849e+10 memory_used_bytes=3.22123e+09 memory_free_bytes=9.66368e+09 "
	f("B580, xe of Linux 7: per-channel sensors, engines in cycles, awake all the time", b580, sensors,
		map[string]string{"hwmon/hwmon3/energy1_input": "590400000", "hwmon/hwmon3/energy2_input": "350000000"},
		[2]string{fmt.Sprintf(client, 38_400_000, 1_000_000), fmt.Sprintf(client, 76_800_000, 10_600_000)},
		card580+"utilization_ratio=0.25 frequency_hertz=1.35e+09 temperature_celsius=51 memory_temperature_celsius=54 power_watts=45.2 energy_joules=590.4")
	f("… whose labels stand the other way round, without a sensor for all of the memory, and nobody on it", b580, sensors,
		map[string]string{"hwmon/hwmon3/energy1_label": "pkg", "hwmon/hwmon3/energy2_label": "card", "hwmon/hwmon3/energy2_input": "520000000", "hwmon/hwmon3/temp3_label": "other"},
		[2]string{"", ""},
		"memory_total_bytes=1.28849e+10 frequency_hertz=1.35e+09 temperature_celsius=51 memory_temperature_celsius=58 power_watts=10 energy_joules=520")
	a770 := card{"0000:03:00.0", "xe", 0, 128, map[string]string{"device": "0x56a0", "resource": window(16 << 30)}}
	f("A770 under xe: only the chip's energy counts, the card's stays 0", a770,
		map[string]string{"hwmon/hwmon2/name": "xe", "hwmon/hwmon2/energy1_input": "0", "hwmon/hwmon2/energy1_label": "card", "hwmon/hwmon2/energy2_input": "1000000", "hwmon/hwmon2/energy2_label": "pkg"},
		map[string]string{"hwmon/hwmon2/energy2_input": "91000000"}, [2]string{"", ""},
		"memory_total_bytes=1.71799e+10 power_watts=45 energy_joules=91")
	a310 := card{"0000:03:00.0", "i915", 0, 128, map[string]string{"device": "0x56a6", "resource": window(4 << 30)}}
	i915 := "drm-driver:\ti915\ndrm-client-id:\t36\ndrm-pdev:\t0000:03:00.0\n%sdrm-engine-render:\t%d ns\ndrm-engine-copy:\t0 ns\ndrm-engine-video:\t7 ns\ndrm-engine-capacity-video:\t2\ndrm-engine-compute:\t%d ns\n"
	regions := "drm-total-system0:\t8012 KiB\ndrm-resident-system0:\t520 KiB\ndrm-total-local0:\t3 GiB\ndrm-resident-local0:\t2 GiB\ndrm-resident-stolen-local0:\t64 KiB\n"
	plain := map[string]string{"drm/card0/gt_act_freq_mhz": "2450", "drm/card0/gt/gt0/rps_act_freq_mhz": "2450", "hwmon/hwmon4/name": "i915", "hwmon/hwmon4/energy1_input": "5000000", "hwmon/hwmon4/in0_input": "950", "hwmon/hwmon4/power1_max": "75000000"}
	later := map[string]string{"hwmon/hwmon4/energy1_input": "105000000"}
	f("A310 with i915 of 6.8: engines in nanoseconds, no temperature", a310, plain, later,
		[2]string{fmt.Sprintf(i915, regions, 1_000_000_000, 0), fmt.Sprintf(i915, regions, 2_500_000_000, 82_420)},
		"memory_total_bytes=4.29497e+09 memory_used_bytes=2.14748e+09 memory_free_bytes=2.14748e+09 utilization_ratio=0.75 frequency_hertz=2.45e+09 power_watts=50 energy_joules=105")
	f("… of 6.5, which counts no memory: unknown, not none", a310, plain, later,
		[2]string{fmt.Sprintf(i915, "", 0, 0), fmt.Sprintf(i915, "", 500_000_000, 0)},
		"memory_total_bytes=4.29497e+09 utilization_ratio=0.25 frequency_hertz=2.45e+09 power_watts=50 energy_joules=105")
	max1550 := card{"0000:03:00.0", "i915", 0, 128, map[string]string{"device": "0x0bd5", "class": "0x038000"}}
	tiles := "drm-driver:\txe\ndrm-client-id:\t5\ndrm-pdev:\t0000:03:00.0\ndrm-resident-vram0:\t33554432 KiB\ndrm-resident-vram1:\t32 GiB\ndrm-cycles-bcs:\t0\ndrm-total-cycles-bcs:\t%d\ndrm-engine-capacity-bcs:\t16\n" +
		"drm-cycles-ccs:\t%d\ndrm-total-cycles-ccs:\t%[1]d\ndrm-engine-capacity-ccs:\t2\n"
	f("Max 1550 of two tiles: memory and engines of both, the card's energy and not a tile's", max1550,
		map[string]string{"hwmon/hwmon1/name": "i915", "hwmon/hwmon1/energy1_input": "0", "hwmon/hwmon2/name": "i915_gt0", "hwmon/hwmon2/energy1_input": "0", "hwmon/hwmon3/name": "i915_gt1", "hwmon/hwmon3/energy1_input": "0"},
		map[string]string{"hwmon/hwmon1/energy1_input": "800000000", "hwmon/hwmon2/energy1_input": "300000000", "hwmon/hwmon3/energy1_input": "310000000"},
		[2]string{fmt.Sprintf(tiles, 1000, 100), fmt.Sprintf(tiles, 2000, 1600)},
		"memory_total_bytes=1.37439e+11 memory_used_bytes=6.87195e+10 memory_free_bytes=6.87195e+10 utilization_ratio=0.75 power_watts=400 energy_joules=800")
}

// Servers whose owners have shown which processors are beside which GPU: eight B60 at
// two sockets of 128 cores, and six Max at two of 52. Every worker has cores beside its own.
func TestListedServers(t *testing.T) {
	f := func(name string, cores, gpus int, kind string) {
		t.Helper()
		tr := newTree(t, 2, cores, 2)
		var needs []Need
		for i := range gpus {
			pci := fmt.Sprintf("0000:%02x:00.0", 0x17+0x11*i)
			tr.gpu(pci, "0x8086", "xe", i*2/gpus, i)
			from := i * 2 / gpus * cores
			tr.write("bus/pci/devices/"+pci+"/device", kind)
			tr.write("bus/pci/devices/"+pci+"/local_cpulist", fmt.Sprintf("%d-%d,%d-%d", from, from+cores-1, from+2*cores, from+3*cores-1))
			needs = append(needs, Need{ID: fmt.Sprint("w", i), Count: 1})
		}
		m := tr.machine()
		plan, err := m.Plan(needs)
		if err != nil || len(m.Problems(needs)) > 0 {
			t.Errorf("%s: %v, %s", name, err, tell(m.Problems(needs)))
			return
		}
		for id, p := range plan {
			if len(p.CPUs) == 0 || len(both(p.CPUs, p.GPUs[0].CPUs)) != len(p.CPUs) || len(p.Nodes) != 1 || p.Nodes[0] != p.GPUs[0].Node {
				t.Errorf("%s: %s has CPUs %s and memory of %v beside a GPU at %s on node %d", name, id, FormatList(p.CPUs), p.Nodes, FormatList(p.GPUs[0].CPUs), p.GPUs[0].Node)
			}
		}
	}
	f("eight B60", 128, 8, "0xe211")
	f("six Max", 52, 6, "0x0bd5")
}
