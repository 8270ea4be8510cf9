package balancer

import (
	"io"
	"log/slog"
	"net"
	"slices"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
)

// TestShares divides workers among doors: each worker belongs to one door where
// there are enough, and no door goes without.
func TestShares(t *testing.T) {
	for workers := 1; workers <= 40; workers++ {
		for doors := 1; doors <= 12; doors++ {
			has, owners := make([]int, doors), make([]int, workers)
			for d := range doors {
				for w := range workers {
					if takesFirst(w, workers, d, doors) {
						has[d]++
						owners[w]++
					}
				}
			}
			for d, n := range has {
				if n < max(1, workers/doors) || n > max(1, (workers+doors-1)/doors) {
					t.Errorf("%d workers, %d doors: door %d has %d", workers, doors, d, n)
				}
			}
			for w, n := range owners {
				if n < max(1, doors/workers) || n > max(1, (doors+workers-1)/workers) {
					t.Errorf("%d workers, %d doors: %d doors take worker %d first", workers, doors, n, w)
				}
			}
		}
	}
}

// TestSharesAreOfCommonWorkers: a pool is divided among the doors that serve its workers.
// What a door of another fleet calls by the same names is not counted either.
func TestSharesAreOfCommonWorkers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	set := control.WorkerSet{Schema: 1, Holder: "east"}
	for _, pool := range []string{"chat", "code"} {
		p := control.Pool{Name: pool, Policy: "least_kv"}
		for _, name := range []string{"w1", "w2"} {
			p.Workers = append(p.Workers, control.Worker{Name: name, URL: "http://127.0.0.1:1", Generation: 1, Kind: "vllm", State: phase.Ready})
		}
		set.Pools = append(set.Pools, p)
	}
	d, err := New(Options{ID: "own", Listener: l, Set: &set, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer d.stopAll()
	hear := func(serial uint64, fleet string, generation uint64) {
		total := func(id string) control.WorkerTotal {
			return control.WorkerTotal{ID: id, Generation: generation, InFlight: 3, ChargedTokens: 100}
		}
		d.peers.hear(control.Totals{Door: "other", Fleet: fleet, Serial: serial, Workers: []control.WorkerTotal{total("chat/w1"), total("chat/w2")}})
	}
	for i, c := range []struct {
		name, fleet string
		generation  uint64
		chat        []string
		elsewhere   int
	}{
		{"another fleet's", "west", 1, []string{"own"}, 0},
		{"the same", "east", 1, []string{"other", "own"}, 3},
		{"of an earlier process", "east", 7, []string{"own"}, 0},
		{"of a version that does not say", "", 1, []string{"other", "own"}, 3},
		{"another fleet's again", "west", 1, []string{"own"}, 0},
	} {
		hear(uint64(i+1), c.fleet, c.generation)
		if got := d.peers.doors("own", "chat"); !slices.Equal(got, c.chat) {
			t.Errorf("%s: the workers of chat are divided among %v; want %v", c.name, got, c.chat)
		}
		if got := d.peers.doors("own", "code"); !slices.Equal(got, []string{"own"}) {
			t.Errorf("%s: the workers of code are divided among %v", c.name, got)
		}
		if got := d.State().Workers[0].Requests.Elsewhere; got != c.elsewhere {
			t.Errorf("%s: %d requests are elsewhere; want %d", c.name, got, c.elsewhere)
		}
	}
}
