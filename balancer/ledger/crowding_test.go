package ledger

import "testing"

// TestAtOnce has two doors choose at the same instants, before either can hear of
// the other: they do not meet at a worker. Of requests that come one by one each
// still gets the worker that is best for it.
func TestAtOnce(t *testing.T) {
	type door struct {
		l  *Ledger
		g  *Group
		ws []*Worker
	}
	var doors [2]door
	for i := range doors {
		d := &doors[i]
		d.l, d.g, d.ws = fleet(4, 1<<20)
		for _, w := range d.ws {
			d.l.SetRates(w, Rates{Prefill: 1000})
		}
		d.l.Share(d.g, func(id string) bool { return (id >= d.ws[2].ID) == (i == 0) })
	}
	now := int64(1e12)
	met := 0
	for round := range 100 {
		now += 10e9
		there := map[int]int{}
		for i := range doors {
			d := &doors[i]
			var cs [2]Charge
			for k := range cs {
				if v, _ := d.l.Pick(d.g, &Ask{Prompt: 2000, Expect: 10, Now: now}, &cs[k]); v != Picked {
					t.Fatal(v)
				}
				if there[cs[k].worker.index]++; there[cs[k].worker.index] > 1 && round > 30 {
					met++
				}
			}
			for k := range cs {
				d.l.Release(&cs[k], Served, now+5e9)
			}
		}
	}
	if met > 0 {
		t.Errorf("the doors met %d times in 70 rounds", met)
	}
	d := &doors[0]
	for range 200 {
		now += 1e9
		var c Charge
		d.l.Pick(d.g, &Ask{Prompt: 2000, Now: now}, &c)
		d.l.Release(&c, Served, now+5e8)
	}
	for _, w := range d.ws[:2] { // its own share is busy
		d.l.Pick(d.g, &Ask{Prompt: 50, Prefer: w, Now: now + 1e9}, &Charge{})
		now += 1e9
	}
	var c Charge
	if d.l.Pick(d.g, &Ask{Prompt: 2000, Now: now + 1e9}, &c); c.worker.index < 2 {
		t.Errorf("a request that comes alone waits at %s for its door's own worker", c.worker.ID)
	}
}
