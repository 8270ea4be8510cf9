package evaluate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
	"roundhouse/kernels/measure"
	"roundhouse/worker/device"
)

const (
	one = "0000:03:00.0"
	two = "0000:83:00.0"
)

// healthy is a machine with two nodes and two cards on which nothing is wrong.
func healthy() *Report {
	cardAt := func(pci string, node int) Card {
		return Card{PCI: pci, Product: "Arc Pro B60", Driver: "xe", Node: node, MemoryBytes: 24 << 30, Usable: true,
			Link: &device.Link{PCI: pci, Speed: 32, MaxSpeed: 32, Width: 8, MaxWidth: 8}, Clock: device.Clock{Now: 2.3e9, Max: 2.4e9}}
	}
	r := &Report{Schema: 1, Machine: Machine{Processor: "made up", Cores: 16, HugePages: "madvise",
		Clock: device.CPUClock{Governor: "performance", Limit: 3.5e9, Max: 3.5e9},
		Nodes: []Node{{0, "0-7", 64 << 30}, {1, "8-15", 64 << 30}}, Cards: []Card{cardAt(one, 0), cardAt(two, 1)}},
		Memory:  []Path{{0, 0, 8, 200e9, 90e-9}, {0, 1, 8, 110e9, 140e-9}, {1, 0, 8, 110e9, 140e-9}, {1, 1, 8, 195e9, 90e-9}},
		Devices: []Device{{Name: "cpu", Copy: 380e9}, {Name: "xpu:" + one, Copy: 400e9}, {Name: "xpu:" + two, Copy: 410e9}}}
	for _, pci := range []string{one, two} {
		r.Transfers = append(r.Transfers, measure.Transfer{Way: measure.Upload, From: "host", To: pci, Bytes: 64 << 10, Seconds: 64e-6}, // small ones are slow everywhere
			measure.Transfer{Way: measure.Upload, From: "host", To: pci, Bytes: 64 << 20, Seconds: 64 * (1 << 20) / 27e9},
			measure.Transfer{Way: measure.Download, From: pci, To: "host", Bytes: 64 << 20, Seconds: 64 * (1 << 20) / 26e9})
	}
	r.Transfers = append(r.Transfers, measure.Transfer{Way: measure.Direct, From: one, To: two, Bytes: 64 << 20, Seconds: 0.003},
		measure.Transfer{Way: measure.ByHost, From: one, To: two, Bytes: 64 << 20, Seconds: 0.006})
	return r
}

// Each fault is named, and nothing else beside it; a healthy machine is left in peace.
func TestSuspect(t *testing.T) {
	f := func(about, text string, spoil func(r *Report)) {
		t.Helper()
		r := healthy()
		spoil(r)
		got := Suspect(r)
		if text == "" && len(got) == 0 {
			return
		}
		if len(got) != 1 || got[0].About != about || !strings.Contains(got[0].Text, text) || got[0].Remedy == "" {
			t.Errorf("%+v; want %s: … %s", got, about, text)
		}
	}
	f("", "", func(*Report) {})
	f("gpu "+one, "4 of 8 lanes", func(r *Report) { r.Machine.Cards[0].Link.Width = 4 })
	f("gpu "+two, "16 of 32 GT/s", func(r *Report) { r.Machine.Cards[1].Link.Speed = 16 })
	f("", "", func(r *Report) { r.Machine.Cards[1].Link.Speed, r.Devices = 2.5, r.Devices[:2] }) // it was never at work
	f("gpu "+two, "host to device: 10.0 GB/s of the 31.5", func(r *Report) { r.Transfers[4].Seconds = 64 * (1 << 20) / 10e9 })
	f("gpu "+one, "reached 900 MHz of 2400 while it worked (pl1)", func(r *Report) {
		r.Machine.Cards[0].Clock = device.Clock{Now: 9e8, Max: 2.4e9, Throttle: []string{"pl1"}}
	})
	f("gpu "+one, "held it back (thermal)", func(r *Report) { r.Machine.Cards[0].Clock.Throttle = []string{"thermal"} })
	f("gpu "+two, "through the host", func(r *Report) {
		r.Transfers[6].From, r.Transfers[7].From, r.Transfers[6].Seconds = two, two, 0.012
	})
	f("gpu "+one, "it copies 200 GB/s, other cards of its kind (Arc Pro B60) 410", func(r *Report) { r.Devices[1].Copy = 200e9 })
	f("node 1", "its own memory", func(r *Report) { r.Memory[3].Rate, r.Memory[2].Rate = 120e9, 70e9 })
	f("node 0", "the memory of node 1 is faster", func(r *Report) { r.Memory[1].Rate = 230e9 })
	f("cpus", "limited to 1.8 GHz of 3.5", func(r *Report) { r.Machine.Clock.Limit = 1.8e9 })
	f("cpus", "powersave", func(r *Report) { r.Machine.Clock.Governor = "powersave" })
	f("cpus", "heat slowed them down 4 times", func(r *Report) { r.Load.Heat = 4 })
	f("machine", "kept 9.0 processors busy", func(r *Report) { r.Load.Busy = 9 })
	f("machine", "gave 7 %", func(r *Report) { r.Load.Stolen = 0.07 })
	f("machine", "large pages", func(r *Report) { r.Machine.HugePages = "never" })
}

// The machine that runs the test is measured whole, in small sizes. A device that cannot
// be opened is a failure of the report, and nothing else of it is lost.
func TestRun(t *testing.T) {
	var cpus []int
	for _, n := range device.Nodes("/sys") {
		cpus = append(cpus, n.CPUs...)
	}
	asked := 0
	r := Run(Options{Short: true, Allowed: cpus[:min(len(cpus), 2)], Devices: []string{"cpu", "xpu:" + one},
		Open: func(name string) (kernels.Backend, error) {
			if name != "cpu" {
				return nil, errors.New("no such card")
			}
			return cpu.New(cpu.Options{Threads: min(2, runtime.NumCPU())})
		},
		Transfers: func(report func(measure.Transfer)) error {
			report(measure.Transfer{Way: measure.Upload, From: "host", To: one, Bytes: 1 << 20, Seconds: 1e-3})
			return errors.New("a link fell")
		},
		Progress: func(string, ...any) { asked++ }})
	if r.Err() != nil || len(r.Memory) == 0 || r.Memory[0].Rate <= 0 || r.Memory[0].Latency <= 0 || len(r.Devices) != 1 || len(r.Devices[0].Linears) < 10 || asked == 0 {
		t.Fatalf("%+v", r)
	}
	if len(cpus) > 1 && len(r.Sums) == 0 {
		t.Error("no sums over two processors")
	}
	if want := []string{"kernels on xpu:" + one + ": no such card", "links of cards: a link fell"}; strings.Join(r.Failures, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", r.Failures)
	}
	var page bytes.Buffer
	if err := r.Write(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"copy GB/s", "linear sym_int4, 1 rows", "host to device", "Not measured: links of cards: a link fell", "--short"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%q is not in the page:\n%s", want, &page)
		}
	}
	text, err := json.Marshal(r)
	var back Report
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil || len(back.Devices) != 1 || back.Devices[0].Copy != r.Devices[0].Copy {
		t.Errorf("%v: %s", err, text)
	}
}

func TestNothingMeasured(t *testing.T) {
	r := &Report{Failures: []string{"memory: cannot map"}}
	if err := r.Err(); !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "cannot map") {
		t.Error(err)
	}
}

// The ring of the latency's measurement goes through every line once.
func TestRing(t *testing.T) {
	m := make([]byte, 64*100)
	ring(m, 64)
	seen, at := 0, uint64(0)
	for ok := true; ok; ok = at != 0 {
		at = binary.LittleEndian.Uint64(m[at:])
		seen++
		if seen > 100 {
			break
		}
	}
	if seen != 100 {
		t.Errorf("back after %d of 100 lines", seen)
	}
}
