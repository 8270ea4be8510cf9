package balancer_test

import (
	"fmt"
	"net"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// TestTotals gives two doors of one folder one fleet: each knows what the other
// has there, counts it in its choices, and forgets it when the other ends.
func TestTotals(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true}), sim.New(sim.Options{Own: true})
	startWorkers(t, a, b)
	a.Hang.Store(true)
	b.Hang.Store(true)
	ds := newDoors(t)
	set := setOf(nil, a, b)
	// Each door has a listener of its own here, so that a test can tell whom it asks.
	urls := map[string]string{}
	for _, id := range []string{"one", "two"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ds.listener.Close()
		if ds.listener, err = l.(*net.TCPListener).File(); err != nil {
			t.Fatal(err)
		}
		urls[id] = "http://" + l.Addr().String()
		l.Close()
		ds.start(id)
		ds.must(id, "PUT", "/worker-set", set, nil)
		ds.reach(id)
	}
	ask := func(id string) {
		ds.url = urls[id]
		go ds.post(brief, "", fmt.Sprintf(chatBody, true, ""))
	}
	f := func(id string, own, elsewhere [2]int) {
		t.Helper()
		(&rig{t: t}).until(fmt.Sprintf("%s has %v and knows of %v", id, own, elsewhere), func() bool {
			s := ds.state(id)
			for i, w := range s.Workers {
				if w.Requests.InFlight != own[i] || w.Requests.Elsewhere != elsewhere[i] || (w.KV.ElsewhereTokens > 0) != (elsewhere[i] > 0) || w.KV.ForeignTokens != 0 {
					return false
				}
			}
			return true
		})
	}
	f("one", [2]int{0, 0}, [2]int{0, 0})
	served := a.Served.Load()
	ask("one")
	(&rig{t: t}).until("a worker has it", func() bool { return a.Served.Load()+b.Served.Load() == served+1 })
	first := 0
	if b.Served.Load() > 0 {
		first = 1
	}
	one, two := [2]int{}, [2]int{}
	one[first] = 1
	f("one", one, two)
	f("two", two, one)
	// The other door takes the other worker, though to itself both are empty.
	ask("two")
	two[1-first] = 1
	f("two", two, one)
	f("one", one, two)
	ds.running["two"].Process.Kill()
	ds.running["two"].Wait()
	delete(ds.running, "two")
	f("one", one, [2]int{})
	set.Version, set.Pools[0].Workers[first].Generation = 2, 2
	ds.must("one", "PUT", "/worker-set", set, nil)
	var s control.State
	if ds.must("one", "GET", "/state", nil, &s); s.Workers[first].KV.ElsewhereTokens != 0 {
		t.Error("a new generation holds what another door had in the old one")
	}
}
