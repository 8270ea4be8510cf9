package supervisor

import (
	"net/http"
	"testing"

	"roundhouse/configs"
	"roundhouse/supervisor/core"
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
	b.until("the relief serves", func() bool {
		w := b.workers()
		return len(w) == 2 && w[1].ID == "chat/"+core.Relief && w[1].State == "ready"
	})
	b.until("the rotation is done", func() bool { state, _ := b.rotation(); return state == "done" })
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
	for i, w := range b.workers() {
		if w != before[i] {
			t.Errorf("%+v became %+v", before[i], w)
		}
	}
}

// A name that the relief needs is refused, as is nothing else.
func TestReliefsName(t *testing.T) {
	cfg := &configs.Config{Pools: []configs.Pool{{Name: "p", Driver: "process", Workers: []configs.Worker{{Name: core.Relief}}, Rotation: configs.Rotation{Strategy: "surge"}}}}
	if _, err := draw(cfg, planner{}); err == nil {
		t.Error("a worker took the relief's name")
	}
}
