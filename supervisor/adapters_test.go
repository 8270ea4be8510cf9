package supervisor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"roundhouse/configs"
)

// TestAdapters follows the adapter blocks of a pool: each worker has them before it is in
// service, again after it has fallen, and as a reload says, without a restart; what cannot
// be loaded is told, and holds nobody up.
func TestAdapters(t *testing.T) {
	b := newBench(t, 2, nil)
	pool := &b.cfg.Pools[0]
	pool.Adapters = []configs.Adapter{{Name: "sql", Path: "/adapters/sql"}}
	b.run()
	if text := b.adapters(); text != "1 [fake sql] 1 [fake sql]" {
		t.Fatalf("in service with %s", text)
	}
	victim := b.workers()[1]
	if err := syscall.Kill(victim.Place.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.until("a worker that has fallen has its adapter again", func() bool { return b.adapters() == "1 [fake sql] 2 [fake sql]" })

	// One is new, one lies elsewhere now, and one is not to be had.
	pool.Adapters = []configs.Adapter{{Name: "sql", Path: "/adapters/sql-2"}, {Name: "tweets", Path: "/adapters/tweets"}, {Name: "lost", Path: "/absent"}}
	b.write()
	if code, text := b.post("/api/reload", ""); code != 200 || !strings.Contains(text, "pools.chat.adapters.tweets") {
		t.Fatal(code, text)
	}
	b.until("the new ones are loaded", func() bool { return b.adapters() == "1 [fake sql tweets] 2 [fake sql tweets]" })
	b.until("the one that is not to be had is told of", func() bool {
		return !slices.ContainsFunc(b.workers(), func(w seen) bool {
			return !strings.Contains(w.LastError, `adapter "lost" is not loaded`) || !strings.Contains(w.LastError, "No adapter found for /absent")
		})
	})
	if text := b.events("adapter"); !strings.Contains(text, "sql-2") {
		t.Errorf("no event tells of the one that moved: %s", text)
	}

	pool.Adapters = nil
	b.write()
	if code, text := b.post("/api/reload", ""); code != 200 {
		t.Fatal(code, text)
	}
	// What enables them goes with the last one, so that the workers turn, too.
	b.until("none is left", func() bool { return b.adapters() == "2 [fake] 3 [fake]" })
}

// adapters are the generations and models of the workers.
func (b *bench) adapters() string {
	var v struct {
		Workers []struct {
			Generation uint64
			Models     []string
		}
	}
	res, err := client.Get(b.api + "/api/workers")
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
		return err.Error()
	}
	var out []string
	for _, w := range v.Workers {
		slices.Sort(w.Models)
		out = append(out, fmt.Sprint(w.Generation, " ", w.Models))
	}
	return strings.Join(out, " ")
}
