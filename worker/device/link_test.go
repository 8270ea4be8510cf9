package device

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// bus makes a chain of PCI devices as sysfs has them: folders within folders, and a link
// for each in bus/pci/devices.
func (tr *tree) bus(chain ...map[string]string) {
	dir := "devices/pci0000:00"
	for _, files := range chain {
		pci := files["pci"]
		dir += "/" + pci
		for name, text := range files {
			if name != "pci" {
				tr.write(dir+"/"+name, text)
			}
		}
		link := filepath.Join(tr.root, "bus/pci/devices", pci)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			tr.t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(tr.root, dir), link); err != nil {
			tr.t.Fatal(err)
		}
	}
}

func port(pci, vendor, speed, width string) map[string]string {
	return map[string]string{"pci": pci, "class": "0x060400", "vendor": vendor, "current_link_speed": speed, "current_link_width": width,
		"max_link_speed": "16.0 GT/s PCIe", "max_link_width": "16"}
}

func endCard(pci, vendor, speed, width string) map[string]string {
	c := port(pci, vendor, speed, width)
	c["class"] = "0x030000"
	return c
}

// An Arc card tells of one lane of the first generation; its switch tells of the slot.
func TestLinkBehindACardsOwnSwitch(t *testing.T) {
	tr := newTree(t, 1, 1, 1)
	tr.bus(port("0000:00:01.0", "0x8086", "32.0 GT/s PCIe", "16"), port("0000:01:00.0", "0x8086", "16.0 GT/s PCIe", "8"),
		port("0000:02:01.0", "0x8086", "2.5 GT/s PCIe", "1"), endCard("0000:03:00.0", "0x8086", "2.5 GT/s PCIe", "1"))
	l, ok := LinkOf(tr.root, "0000:03:00.0")
	if want := (Link{PCI: "0000:01:00.0", Speed: 16, MaxSpeed: 16, Width: 8, MaxWidth: 16}); !ok || l != want {
		t.Errorf("%+v, %v; want %+v", l, ok, want)
	}
	if rate := l.Rate() / 1e9; rate < 15.7 || rate > 15.8 {
		t.Errorf("8 lanes of the fourth generation carry %.2f GB/s", rate)
	}
}

// A card without a switch tells for itself, also below Intel's own root port.
func TestLinkOfAPlainCard(t *testing.T) {
	tr := newTree(t, 1, 1, 1)
	tr.bus(port("0000:00:01.0", "0x8086", "2.5 GT/s PCIe", "4"), endCard("0000:01:00.0", "0x10de", "5.0 GT/s PCIe", "4"))
	l, ok := LinkOf(tr.root, "0000:01:00.0")
	if !ok || l.PCI != "0000:01:00.0" || l.Rate() != 2e9 {
		t.Errorf("%+v, %v, %v", l, ok, l.Rate())
	}
	tr.bus(port("0000:00:02.0", "0x8086", "8.0 GT/s PCIe", "4"), endCard("0000:04:00.0", "0x8086", "8.0 GT/s PCIe", "4"))
	if l, ok := LinkOf(tr.root, "0000:04:00.0"); !ok || l.PCI != "0000:04:00.0" {
		t.Errorf("%+v, %v", l, ok)
	}
}

// A port that does not know, and a card that is not there, have no link.
func TestLinkUnknown(t *testing.T) {
	tr := newTree(t, 1, 1, 1)
	tr.bus(endCard("0000:00:02.0", "0x8086", "Unknown", "255"))
	for _, pci := range []string{"0000:00:02.0", "0000:09:00.0"} {
		if l, ok := LinkOf(tr.root, pci); ok {
			t.Errorf("%s: %+v", pci, l)
		}
	}
}

func TestClocks(t *testing.T) {
	tr := newTree(t, 1, 2, 1)
	gpu := "bus/pci/devices/0000:03:00.0/"
	tr.write(gpu+"tile0/gt0/freq0/act_freq", "900")
	tr.write(gpu+"tile0/gt0/freq0/rp0_freq", "2400")
	tr.write(gpu+"tile0/gt0/freq0/throttle/reason_pl1", "1")
	tr.write(gpu+"tile0/gt0/freq0/throttle/reason_thermal", "0")
	c := ClockOf(tr.root, "0000:03:00.0")
	if c.Now != 900e6 || c.Max != 2400e6 || !slices.Equal(c.Throttle, []string{"pl1"}) {
		t.Errorf("%+v", c)
	}
	if c := ClockOf(tr.root, "0000:04:00.0"); c.Now != 0 || c.Max != 0 || c.Throttle != nil {
		t.Errorf("a card that says nothing: %+v", c)
	}
	for cpu, limit := range []string{"3500000", "2000000"} {
		dir := "devices/system/cpu/cpu" + string(rune('0'+cpu)) + "/"
		tr.write(dir+"cpufreq/scaling_max_freq", limit)
		tr.write(dir+"cpufreq/cpuinfo_max_freq", "3500000")
		tr.write(dir+"cpufreq/scaling_governor", "performance")
		tr.write(dir+"thermal_throttle/core_throttle_count", "3")
	}
	if got, want := CPUClocks(tr.root, []int{0, 1}), (CPUClock{"performance", 2e9, 3.5e9, 6}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	tr.write("kernel/mm/transparent_hugepage/enabled", "always madvise [never]")
	if got := HugePages(tr.root); got != "never" {
		t.Errorf("%q", got)
	}
}
