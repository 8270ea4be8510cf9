package sim

import (
	"fmt"

	"roundhouse/balancer/ledger"
)

// tellEvery is how often doors tell each other their totals while they change,
// in seconds.
const tellEvery = 0.005

// doors is several doors of one fleet. Each gets every n-th request and has
// accounts of its own; what the others have it knows by what they said last.
type doors struct {
	all   []*ledgerPolicy
	every float64 // 0: they never speak
	told  float64
	begun bool
}

func newDoors(n int, every float64) *doors {
	d := &doors{every: every}
	for i := range n {
		o := newLedgerPolicy(ledger.LeastKV)
		o.door, o.several, o.tells = i, n > 1, every > 0
		d.all = append(d.all, o)
	}
	return d
}

// Name implements Policy.
func (d *doors) Name() string { return fmt.Sprintf("by %d doors", len(d.all)) }

// Place implements Policy.
func (d *doors) Place(f *Fleet, j *Job, now float64) int {
	d.tell(f, now)
	return d.all[j.door].Place(f, j, now)
}

// tell exchanges the totals as they are now, where it is time.
func (d *doors) tell(f *Fleet, now float64) {
	if d.every == 0 || now < d.told+d.every {
		return
	}
	d.told = now
	for i, o := range d.all {
		if o.start(f, now); !d.begun {
			o.l.Begin(&o.g, i*f.Workers()/len(d.all))
			o.l.Share(&o.g, func(id string) bool { return o.worker(id)*len(d.all)/f.Workers() != i })
		}
	}
	d.begun = true
	for i, o := range d.all {
		for _, t := range o.untold {
			for k, other := range d.all {
				if k != i {
					other.table.Add(t.worker, t.blocks)
				}
			}
		}
		o.untold = nil
	}
	for w := range f.Workers() {
		said := make([]ledger.Elsewhere, len(d.all))
		for i, o := range d.all {
			_, said[i] = o.l.Totals(o.ws[w], nanos(now))
		}
		for i, o := range d.all {
			var e ledger.Elsewhere
			for k := range said {
				if k != i {
					e.Add(said[k])
				}
			}
			o.l.SetElsewhere(o.ws[w], 1, e)
		}
	}
}

func (d *doors) turn(j *Job, now float64) float64 { return d.all[j.door].turn(j, now) }

// First implements Policy.
func (d *doors) First(f *Fleet, j *Job, now float64) { d.all[j.door].First(f, j, now) }

// Ended implements Policy.
func (d *doors) Ended(f *Fleet, j *Job, now float64) { d.all[j.door].Ended(f, j, now) }

// Scraped implements Policy.
func (d *doors) Scraped(f *Fleet, now float64) {
	d.tell(f, now)
	for _, o := range d.all {
		o.Scraped(f, now)
	}
}
