package supervisor

import (
	"bytes"
	"net/http"
	"testing"

	"roundhouse/supervisor/journal"
)

// Of workers, pools, drivers and configurations that are there no more nothing is
// kept: not in memory, and not in the journal, whose specs hold secrets.
func TestForgets(t *testing.T) {
	b := newBench(t, 1, nil)
	old := b.cfg.Pools[0]
	old.Name, old.Workers = "old", counted(2)
	old.Engine.Environment = map[string]string{"HF_TOKEN": "hf_of_the_old_pool"}
	old.Rotation.MinReady = 0
	b.cfg.Pools = append(b.cfg.Pools, old)
	b.run()
	if got := b.specs(); len(got) != 3 {
		t.Fatalf("the journal has %d specs; want one a worker", len(got))
	}
	if status, text := b.post("/api/pools/old/rotate", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("the rotation has ended", func() bool {
		_, why := b.rotationWaits()
		var running bool
		_ = b.s.ask(t.Context(), func() { running = b.s.memory.intent.Rotations["old"].State == "running" })
		return !running && why == ""
	})
	b.cfg.Pools = b.cfg.Pools[:1]
	b.cfg.Pools[0].Engine.Environment = map[string]string{"HF_TOKEN": "hf_of_the_new_one"}
	b.cfg.Pools[0].Rotation.MinReady = 0
	b.write()
	if status, text := b.post("/api/reload", ""); status != http.StatusOK {
		t.Fatal(status, text)
	}
	b.until("the pool is gone and the other one turned", func() bool {
		var done bool
		_ = b.s.ask(t.Context(), func() {
			done = len(b.s.memory.intent.Workers) == 1 && b.s.memory.intent.Rotations["chat"].State == "done"
		})
		return done
	})
	if err := b.s.ask(t.Context(), func() {
		b.s.step()
		if n := len(b.s.fleet.members); n != 1 {
			t.Errorf("%d workers are known; want 1", n)
		}
		if n := len(b.s.trafficCounts); n != 1 {
			t.Errorf("%d pools are counted; want 1", n)
		}
		if n := len(b.s.memory.specs); n != 1 {
			t.Errorf("%d specs are known; want 1", n)
		}
		if n := len(b.s.preparing.prepared) + len(b.s.preparing.tries); n != 0 {
			t.Errorf("%d preparations are remembered; want none", n)
		}
	}); err != nil {
		t.Fatal(err)
	}
	got := b.specs()
	if len(got) != 1 {
		t.Errorf("the journal has %d specs; want 1", len(got))
	}
	for hash, spec := range got {
		if !bytes.Contains(spec, []byte("hf_of_the_new_one")) {
			t.Errorf("spec %s is not that of the worker that runs: %s", hash, spec)
		}
	}
}

// specs are the journal's, by hash.
func (b *bench) specs() map[string][]byte {
	b.t.Helper()
	out := map[string][]byte{}
	if err := b.s.ask(b.t.Context(), func() {
		if err := b.s.memory.journal.Read(journal.Specs, func(key string, data []byte) error {
			out[key] = bytes.Clone(data)
			return nil
		}); err != nil {
			b.t.Error(err)
		}
	}); err != nil {
		b.t.Fatal(err)
	}
	return out
}
