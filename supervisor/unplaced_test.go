package supervisor

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"roundhouse/configs"
)

// withLost adds a pool to the bench that wants a card which is not there.
func (b *bench) withLost() {
	lost := b.cfg.Pools[0]
	lost.Name, lost.Devices, lost.Engine.Model = "lost", "auto", "/nowhere/model"
	lost.Workers = counted(1)
	b.cfg.Pools = append(b.cfg.Pools, lost)
}

// A card that is missing costs the worker that wants it, and nobody else: not at the
// first start, not at a reload of something else, and not after a crash of the
// supervisor.
func TestMissingCardCostsItsWorkerAlone(t *testing.T) {
	b := newBench(t, 1, nil)
	b.withLost()
	b.spawn()
	states := func() string {
		var out []string
		for _, w := range b.workers() {
			out = append(out, w.ID+" "+w.State)
		}
		slices.Sort(out)
		return strings.Join(out, ", ")
	}
	const want = "chat/1 ready, lost/1 failed"
	b.until("the other pool serves", func() bool { return states() == want && b.count(1) == nil })
	for _, w := range b.workers() {
		if w.ID == "lost/1" && !strings.Contains(w.Reason, "1 GPUs wanted") {
			t.Errorf("the reason is %q", w.Reason)
		}
	}
	b.cfg.Pools[0].Rotation.MinReady = 0
	b.write()
	if status, text := b.post("/api/reload", ""); status != http.StatusOK {
		t.Errorf("a reload of something else: %d %s", status, text)
	}
	b.kill()
	b.spawn()
	b.until("its successor adopts", func() bool { return states() == want && b.count(1) == nil })
}

// A law: a refused command leaves no trace, neither in force nor in the journal.
func TestRefusedLeavesNoTrace(t *testing.T) {
	b := newBench(t, 1, nil)
	b.withLost()
	b.spawn()
	b.until("the other pool serves", func() bool { return b.count(1) == nil && strings.Contains(b.shown(), "lost/1 failed") })
	before := b.shown()
	refused := func(path, body, want string) {
		t.Helper()
		if status, text := b.post(path, body); status < 400 || !strings.Contains(text, want) {
			t.Errorf("POST %s %s: %d %s; want %q", path, body, status, text, want)
		}
		if now := b.shown(); now != before {
			t.Errorf("after POST %s %s it was\n%s\nand is\n%s", path, body, before, now)
		}
	}
	refused("/api/pools/lost/scale", `{"workers":3}`, "worker lost/2: 1 GPUs wanted")
	refused("/api/pools/chat/scale", `{"workers":0}`, "give 1 to 1024")
	refused("/api/pools/none/scale", `{"workers":1}`, "not configured")
	refused("/api/pools/chat/rotate", `{"dry_run":true,"what":1}`, "unknown field")
	refused("/api/schedule", `{"pool":"none","off":true}`, "not configured")
	refused("/api/workers/chat/1/undo", "", "drain, undrain, stop, start and rotate")
	refused("/api/pools/chat/rotate", `{"continue":true}`, "no rotation of chat is halted")
	good := slices.Clone(b.cfg.Pools)
	more := b.cfg.Pools[1]
	more.Name, more.Workers = "more", []configs.Worker{{Name: "1", GPUs: []string{"0000:99:00.0"}}}
	b.cfg.Pools = append(b.cfg.Pools, more)
	b.write()
	refused("/api/reload", "", "worker more/1: GPU 0000:99:00.0 is not in this machine")
	b.cfg.Pools = good
	b.write()
	if status, text := b.post("/api/reload", ""); status != http.StatusOK {
		t.Errorf("the file is as it was, and is refused: %d %s", status, text)
	}
	b.kill()
	b.spawn()
	b.until("its successor adopts", func() bool { return b.count(1) == nil && b.shown() == before })
}

// shown is what the admin API tells of workers and schedules, without their times.
func (b *bench) shown() string {
	var out []string
	for _, w := range b.workers() {
		out = append(out, w.ID+" "+w.State)
	}
	for _, path := range []string{"/api/rotations", "/api/schedule", "/api/config"} {
		res, err := client.Get(b.api + path)
		if err != nil {
			return err.Error()
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			return err.Error()
		}
		out = append(out, string(text))
	}
	return strings.Join(out, "\n")
}
