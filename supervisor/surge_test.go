package supervisor

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"roundhouse/configs"
	"roundhouse/supervisor/core"
	"roundhouse/worker/device"
)

// A pool of one that surges has a second worker beside it before the first is
// taken out: with a door that tries nothing twice, no request finds nobody.
func TestSurge(t *testing.T) {
	b := newBench(t, 1, map[string]string{"FAKE_PACE": "5ms"})
	b.cfg.Pools[0].Rotation.Strategy, b.cfg.Pools[0].Rotation.MinReady = "surge", 1
	b.run()
	before := b.workers()[0]
	stop := b.load(4)
	if status, text := b.post("/api/pools/chat/rotate", `{"dry_run":true}`); status != http.StatusOK {
		t.Errorf("dry run: %d %s", status, text)
	}
	if status, text := b.post("/api/pools/chat/rotate", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("the rotation is done", func() bool { state, _ := b.rotation(); return state == "done" })
	if text := b.events("ready"); !strings.Contains(text, "chat/"+core.Relief) {
		t.Errorf("the relief did not serve: %s", text)
	}
	b.until("the relief is gone", func() bool { return len(b.workers()) == 1 && len(b.pids()) == 2 })
	stop()
	if w := b.workers()[0]; w.Generation != before.Generation+1 || w.State != "ready" {
		t.Errorf("%+v", w)
	}
}

// What does not start is the relief, and nothing was drained for it.
func TestSurgeOfWhatDoesNotStart(t *testing.T) {
	b := newBench(t, 2, nil)
	b.cfg.Pools[0].Rotation.Strategy, b.cfg.Pools[0].Rotation.MinReady = "surge", 2
	b.run()
	before := b.workers()
	b.cfg.Pools[0].Engine.Environment = map[string]string{"FAKE_FAIL": "new-model"}
	b.write()
	if status, text := b.post("/api/reload", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("the rotation is rolled back", func() bool { state, _ := b.rotation(); return state == "rolled_back" })
	b.until("the relief is gone", func() bool { return len(b.workers()) == 2 })
	if after := b.workers(); !slices.Equal(before, after) {
		t.Errorf("%+v became %+v", before, after)
	}
}

// A name that the relief needs is refused, as is nothing else.
func TestReliefsName(t *testing.T) {
	cfg := &configs.Config{Pools: []configs.Pool{{Name: "p", Driver: "process", Workers: []configs.Worker{{Name: core.Relief}}, Rotation: configs.Rotation{Strategy: "surge"}}}}
	if _, err := newDeployment(cfg, planner{}, nil); err == nil {
		t.Error("a worker took the relief's name")
	}
}

// The relief gets a GPU that nobody has, as many as the others have, and nothing
// that another worker needs; on the CPU a share of the cores is its own.
func TestReliefsPlace(t *testing.T) {
	gpu := func(n int) device.GPU {
		return device.GPU{PCI: fmt.Sprintf("0000:%02x:00.0", n), Vendor: "intel", Driver: "xe", Render: "/dev/dri/renderD128"}
	}
	f := func(name string, gpus, workers, each int, devices, want string) {
		t.Helper()
		m := device.Machine{Nodes: []device.Node{{MemoryBytes: 1}}}
		for c := range 7 {
			m.Cores = append(m.Cores, device.Core{CPUs: []int{c}})
		}
		for i := range gpus {
			m.GPUs = append(m.GPUs, gpu(i+1))
		}
		places := Places(&configs.Config{Pools: []configs.Pool{{
			Name: "p", Driver: "docker", Devices: devices, GPUsPerWorker: each, Workers: counted(workers), Rotation: configs.Rotation{Strategy: "surge"},
		}}}, m)
		got := "none"
		if p, ok := places["p/"+core.Relief]; ok {
			got = p.CPUs
			for _, g := range p.GPUs {
				got += " " + g.ID
			}
		}
		if got != want {
			t.Errorf("%s: got %q; want %q", name, got, want)
		}
	}
	f("a free one", 3, 2, 1, "auto", "5-6 0000:03:00.0")
	f("none is free", 2, 2, 1, "auto", "none")
	f("two each, two free", 6, 2, 2, "auto", "5-6 0000:05:00.0 0000:06:00.0")
	f("two each, one free", 5, 2, 2, "auto", "none")
	f("the CPU", 0, 2, 1, "cpu", "5-6")
}
