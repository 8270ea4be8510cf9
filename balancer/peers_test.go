package balancer_test

import (
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// apart starts two doors of one folder, each with a listener of its own, so that
// a test can tell whom it asks.
func apart(t *testing.T, workers ...*sim.Worker) (*doors, control.WorkerSet, map[string]string) {
	ds := newDoors(t)
	set := setOf(nil, workers...)
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
	return ds, set, urls
}

// TestCachedElsewhere sends a long prompt through one door: the other knows
// where it is cached then.
func TestCachedElsewhere(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true, Words: 2}), sim.New(sim.Options{Own: true, Words: 2})
	startWorkers(t, a, b)
	ds, _, urls := apart(t, a, b)
	prompt := strings.Replace(okBody, `"x"`, `"`+strings.Repeat("a long story ", 1000)+`"`, 1)
	(&rig{t: t}).until("the doors know of each other", func() bool { return ds.state("one").Peers == 1 && ds.state("two").Peers == 1 })
	send := func(id string) string {
		ds.url = urls[id]
		resp, got, err := ds.post(brief, "", prompt)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v %v %s", err, resp, got)
		}
		return resp.Header.Get("x-request-id")
	}
	(&rig{t: t}).until("the other door has heard what is cached", func() bool {
		send("one") // the first time nobody may have been listening
		var h control.Handover
		ds.must("two", "GET", "/handover", nil, &h)
		return len(h.Prefix) == 1 && len(h.Prefix[0].Chunks) > 0
	})
	var d control.Decision
	if ds.must("two", "GET", "/decisions/"+send("two"), nil, &d); d.Reason != "prefix" || d.Candidates[0].PrefixTokens < 1000 {
		t.Errorf("the other door chose by %s: %+v", d.Reason, d.Candidates)
	}
}

// TestTotals gives two doors of one folder one fleet: each knows what the other
// has there, counts it in its choices, and forgets it when the other ends.
func TestTotals(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true}), sim.New(sim.Options{Own: true})
	startWorkers(t, a, b)
	a.Hang.Store(true)
	b.Hang.Store(true)
	ds, set, urls := apart(t, a, b)
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

// TestLengthsHandedOver: a door that comes knows from the one before how long prompts
// of each length take, before it has sent any.
func TestLengthsHandedOver(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 2, Prefill: time.Millisecond})
	startWorkers(t, w)
	set := setOf(nil, w)
	ds := newDoors(t)
	ds.start("one")
	ds.must("one", "PUT", "/worker-set", set, nil)
	ds.reach("one")
	var h control.Handover
	for word, n := range map[string]int{"short ": 500, "longer ": 3000} {
		prompt := strings.Replace(okBody, `"x"`, `"`+strings.Repeat(word, n)+`"`, 1)
		prompt = strings.Replace(prompt, "{", `{"stream":true,`, 1)
		if resp, got, err := ds.post(brief, "", prompt); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v %v %s", err, resp, got)
		}
	}
	ds.must("one", "GET", "/handover", nil, &h)
	if len(h.Pools) != 1 || len(h.Pools[0].Lengths) != 2 {
		t.Fatalf("two lengths were asked, and it hands over %+v", h.Pools)
	}
	want := h.Pools
	ds.start("two")
	ds.must("two", "GET", "/handover", nil, &h)
	if !reflect.DeepEqual(h.Pools, want) {
		t.Errorf("it knows %+v; the door before it knew %+v", h.Pools, want)
	}
}
