package anomaly

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// fleet makes up the minutes of eight workers behind one door: traffic of day and night
// and of weekends, waits that all share, noise of each, cold caches after turns.
type fleet struct {
	rng     *rand.Rand
	at      time.Time
	minute  int
	shared  float64 // what moves all workers alike, minute by minute
	offset  []float64
	born    []int
	process []int
	load    func(time.Time) float64 // of capacity
	night   int                     // the minute of the day from which workers turn, one each six minutes
	speed   float64                 // of the release that runs
	// What a test does to one worker.
	slow   func(worker, minute int) float64 // times as slow
	leak   func(worker int) float64         // an hour
	broken func(worker, minute int) float64 // share of errors
}

const workers = 8

func newFleet(seed uint64) *fleet { return fleetOf(workers, seed, dayAndNight) }

// dayAndNight is the traffic that the detector was tuned on.
func dayAndNight(at time.Time) float64 {
	load := 0.55 + 0.4*math.Sin((hourOf(at)-9)/24*2*math.Pi)
	if d := at.Weekday(); d == time.Saturday || d == time.Sunday {
		load *= 0.5
	}
	return load
}

func hourOf(at time.Time) float64 { return float64(at.Hour()) + float64(at.Minute())/60 }

func fleetOf(n int, seed uint64, load func(time.Time) float64) *fleet {
	f := &fleet{rng: rand.New(rand.NewPCG(seed, 5)), at: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), speed: 1,
		offset: make([]float64, n), born: make([]int, n), process: make([]int, n), load: load, night: 180,
		slow: func(int, int) float64 { return 1 }, leak: func(int) float64 { return 0 }, broken: func(int, int) float64 { return 0.002 }}
	for w := range n {
		f.offset[w] = 0.05 * f.rng.NormFloat64() // no two devices are quite alike
		f.born[w] = -600
	}
	return f
}

// next is the next minute.
func (f *fleet) next() Minute {
	m := Minute{At: f.at, Workers: map[string]Worker{}}
	load := f.load(f.at)
	f.shared = 0.9*f.shared + 0.08*f.rng.NormFloat64()
	f.rotations()
	if f.minute%(7*1440) == 5*1440+600 { // a release each Saturday, a tenth slower or faster, all turned
		f.speed = 1 + 0.1*(2*f.rng.Float64()-1)
		for w := range f.born {
			f.turn(w)
		}
	}
	for w := range f.born {
		age := f.minute - f.born[w]
		if age < 3 || f.rng.Float64() < 0.002 { // it turns, or a scrape was lost
			continue
		}
		m.Workers[fmt.Sprintf("p/%d", w)] = f.worker(w, age, load)
	}
	f.at, f.minute = f.at.Add(time.Minute), f.minute+1
	return m
}

// rotations turn a worker after the other, each night (from three o'clock on).
func (f *fleet) rotations() {
	if since := f.minute%1440 - f.night; since >= 0 && since%6 == 0 && since/6 < len(f.born) {
		f.turn(since / 6)
	}
}

func (f *fleet) turn(w int) {
	f.born[w] = f.minute
	f.process[w]++
}

func (f *fleet) worker(w, age int, load float64) Worker {
	n := int(40*load + 10*f.rng.Float64())
	cold := 0.25 * math.Exp(-float64(age)/6)
	noise := func(sigma float64) float64 { return sigma * f.rng.NormFloat64() }
	slow := f.slow(w, f.minute) * f.speed
	ttft := 0.3 * math.Exp(1.2*load+f.shared+f.offset[w]+cold+noise(0.12)) * slow
	if f.rng.Float64() < 0.01 { // a long prompt or two in this minute
		ttft *= 1.5 + f.rng.Float64()
	}
	gap := 0.02 * math.Exp(0.4*load+0.3*f.shared+f.offset[w]+noise(0.05)) * slow
	bad := 0
	for range n {
		if f.rng.Float64() < f.broken(w, f.minute) {
			bad++
		}
	}
	grown := 1 + 0.08*(1-math.Exp(-float64(age)/30)) + 0.02*load + f.leak(w)*float64(age)/60
	return Worker{Pool: "p", Process: fmt.Sprint(f.process[w]), Values: map[Figure]Value{
		TTFT: {ttft, n}, Gap: {gap, n}, Errors: {float64(bad) / float64(n), n}, Memory: {8e9 * grown * math.Exp(noise(0.004)), 0},
	}}
}

// In a month of daily traffic with nightly rotations and weekly releases there is at
// most one alarm a week for a fleet of eight.
func TestMonth(t *testing.T) {
	const months, weeks = 1, 30.0 / 7
	alarms := 0
	for seed := range uint64(months) {
		f, d := newFleet(seed), New()
		for range 30 * 1440 {
			for _, x := range d.Add(f.next()) {
				if x.Over.IsZero() {
					alarms++
					t.Logf("month %d, %v: %s: %v", seed, x.Since.Format("02 15:04"), x.Object, x.Signs)
				}
			}
		}
	}
	if each := float64(alarms) / months / weeks; each > 1 {
		t.Errorf("%.1f alarms a week", each)
	}
}

// found returns after how many minutes a fault of worker 3 is told of, in a fleet that
// has run for a day; 0: not within the given time.
func found(t *testing.T, seed uint64, harm func(f *fleet, from int), within int) int {
	t.Helper()
	return foundIn(newFleet(seed), harm, within)
}

func foundIn(f *fleet, harm func(f *fleet, from int), within int) int {
	d := New()
	for range 1440 + 600 { // ten in the morning
		d.Add(f.next())
	}
	from := f.minute
	harm(f, from)
	for i := range within {
		for _, x := range d.Add(f.next()) {
			if x.Object == "p/3" && x.Over.IsZero() && !x.Missing {
				return i + 1
			}
		}
	}
	return 0
}

// A worker that becomes 1.3 times slower is found within 15 minutes, one that fails a
// twentieth of its requests too, and a leak of 1 % an hour within six hours.
func TestHarm(t *testing.T) {
	f := func(name string, within int, harm func(f *fleet, from int)) {
		t.Helper()
		for seed := range uint64(5) {
			if n := found(t, 100+seed, harm, within); n == 0 {
				t.Errorf("%s, seed %d: not within %d minutes", name, seed, within)
			} else {
				t.Logf("%s, seed %d: after %d minutes", name, seed, n)
			}
		}
	}
	f("1.3 times slower", 15, func(f *fleet, from int) {
		f.slow = func(w, _ int) float64 { return map[bool]float64{true: 1.3, false: 1}[w == 3] }
	})
	f("errors", 15, func(f *fleet, from int) {
		f.broken = func(w, _ int) float64 { return map[bool]float64{true: 0.1, false: 0.002}[w == 3] }
	})
	f("leak", 6*60, func(f *fleet, from int) {
		f.turn(3) // it leaks from its beginning, as leaks do
		f.leak = func(w int) float64 { return map[bool]float64{true: 0.01, false: 0}[w == 3] }
	})
}

// A worker that says nothing any more is told of as that, once, and its return.
func TestSilence(t *testing.T) {
	f, d := newFleet(1), New()
	for range 200 {
		d.Add(f.next())
	}
	var told []Incident
	for i := range 30 {
		m := f.next()
		if i < 20 {
			delete(m.Workers, "p/5")
		}
		told = append(told, d.Add(m)...)
	}
	if len(told) != 2 || !told[0].Missing || told[0].Object != "p/5" || told[1].Over.IsZero() {
		t.Errorf("%+v", told)
	}
}

// What one worker shows at once is one incident with several signs.
func TestOneIncident(t *testing.T) {
	f, d := newFleet(2), New()
	for range 600 {
		d.Add(f.next())
	}
	f.slow = func(w, _ int) float64 { return map[bool]float64{true: 3, false: 1}[w == 3] }
	begun := 0
	for range 30 {
		for _, x := range d.Add(f.next()) {
			if x.Over.IsZero() {
				begun++
			}
		}
	}
	open := d.Open()
	if begun > 2 || len(open) != 1 || len(open[0].Signs) != 2 || open[0].Signs[0].Is < 2.5*open[0].Signs[0].ShouldBe {
		t.Errorf("%d times told; open: %+v", begun, open)
	}
}
