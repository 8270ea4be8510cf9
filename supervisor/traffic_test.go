package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundhouse/configs"
	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
)

// Before the only worker of a pool is stopped its model's files are read, and the
// event says how much.
func TestGapReadsTheModelFirst(t *testing.T) {
	b := newBench(t, 1, nil)
	model := filepath.Join(b.dir, "model")
	if err := os.Mkdir(model, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(model, "model.safetensors"), make([]byte, 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	b.cfg.Pools[0].Engine.Model = model
	b.run()
	if status, text := b.post("/api/pools/chat/rotate", ""); status != 200 {
		t.Fatal(status, text)
	}
	b.until("the rotation is done", func() bool { state, _ := b.rotation(); return state == "done" })
	if text := b.events("prepared"); !strings.Contains(text, "5 MiB of "+model) {
		t.Errorf("events: %s", text)
	}
}

func TestHostPath(t *testing.T) {
	f := func(model, image string, volumes []string, want string) {
		t.Helper()
		spec := driver.Spec{Engine: configs.Engine{Model: model}, Container: configs.Container{Image: image, Volumes: volumes}}
		if got := hostPath(spec); got != want {
			t.Errorf("%s with %v: %q; want %q", model, volumes, got, want)
		}
	}
	here := t.TempDir()
	f(here, "", nil, here)
	f("", "", nil, "")
	f("org/name", "", nil, "") // a name, no folder
	f("/llm/models/Qwen3-8B", "image", []string{"/home/intel/LLM:/llm/models"}, "/home/intel/LLM/Qwen3-8B")
	f("/llm/models/Qwen3-8B", "image", []string{"cache:/llm", "/home/intel/LLM:/llm/models/:ro"}, "/home/intel/LLM/Qwen3-8B")
	f("/llm/models2/x", "image", []string{"/home/intel/LLM:/llm/models"}, "")
	f(here, "image", nil, "") // the image's own
}

// A part of a day is learned when it is over, from what the workers served in it,
// whatever generations they went through.
func TestTrafficIsLearned(t *testing.T) {
	b := newBench(t, 1, nil)
	b.run()
	wall, now := time.Date(2026, 11, 21, 3, 1, 0, 0, time.UTC), time.Date(2026, 11, 21, 3, 1, 0, 0, time.UTC)
	see := func(served int64) core.Observed {
		return core.Observed{Wall: wall, Workers: map[string]core.Seen{"chat/1": {Served: served}}}
	}
	var got float64
	if err := b.s.ask(t.Context(), func() {
		zone := b.s.plan.pools[0].Plan.Zone()
		wall = time.Date(2026, 11, 21, 3, 1, 0, 0, zone)
		clear(b.s.trafficCounts)
		b.s.fleet.at("chat/1").counted = false
		for _, served := range []int64{1000, 1010, 1030, 0, 5} { // it was restarted in between
			b.s.learn(see(served), now)
			wall, now = wall.Add(3*time.Minute), now.Add(3*time.Minute)
		}
		b.s.learn(see(7), now)
		got = b.s.memory.intent.Pools["chat"].Traffic.Requests[12]
	}); err != nil {
		t.Fatal(err)
	}
	if got != 37 {
		t.Errorf("learned %v requests; want 37", got)
	}
}
