package anomaly

import (
	"flag"
	"math"
	"testing"
	"time"
)

var weeks = flag.Int("weeks", 1, "of each workload that the detector was not tuned on")

// heldOut are fleets that the detector was not tuned on: other days, weekends, sizes,
// nights and seeds.
func heldOut(seed uint64) map[string]*fleet {
	weekend := func(at time.Time) bool { return at.Weekday() == time.Saturday || at.Weekday() == time.Sunday }
	peak := func(at time.Time, hour, width float64) float64 {
		d := (hourOf(at) - hour) / width
		return math.Exp(-d * d / 2)
	}
	all := map[string]*fleet{
		"two peaks a day, four": fleetOf(4, seed, func(at time.Time) float64 { return 0.2 + 0.6*peak(at, 10, 1.5) + 0.5*peak(at, 20, 2) }),
		"always the same, six":  fleetOf(6, seed, func(time.Time) float64 { return 0.7 }),
		"busier at weekends, sixteen": fleetOf(16, seed, func(at time.Time) float64 {
			if weekend(at) {
				return 0.75 + 0.2*math.Sin((hourOf(at)-12)/24*2*math.Pi)
			}
			return 0.6 + 0.1*math.Sin((hourOf(at)-12)/24*2*math.Pi) // fewer than 20 requests a minute are no figure
		}),
		"office hours alone, eight": fleetOf(8, seed, func(at time.Time) float64 {
			if h := hourOf(at); !weekend(at) && h >= 8 && h < 18 {
				return 0.8
			}
			return 0.15
		}),
		"a batch each night, twelve": fleetOf(12, seed, func(at time.Time) float64 {
			if h := hourOf(at); h >= 1 && h < 3 {
				return 0.95
			}
			return 0.3 + 0.2*peak(at, 14, 3)
		}),
	}
	for _, f := range all {
		f.night = 330 // half past five
	}
	return all
}

// On workloads that it was not tuned on the detector has at most one false alarm a week
// and fleet, and finds what TestHarm provokes as soon. The long form is `-args -weeks 8`.
func TestHeldOut(t *testing.T) {
	alarms, fleets := 0, 0
	for name, f := range heldOut(7001) {
		d, each := New(), 0
		for range *weeks * 7 * 1440 {
			for _, x := range d.Add(f.next()) {
				if x.Over.IsZero() {
					each++
					t.Logf("%s, %v: %s: %v", name, x.Since.Format("02 15:04"), x.Object, x.Signs)
				}
			}
		}
		t.Logf("%s: %d false alarms in %d weeks", name, each, *weeks)
		alarms, fleets = alarms+each, fleets+1
	}
	if each := float64(alarms) / float64(fleets**weeks); each > 1 {
		t.Errorf("%.2f false alarms a week and fleet", each)
	}
	harms := map[string]struct {
		within int
		do     func(f *fleet, from int)
	}{
		"1.3 times slower": {15, func(f *fleet, _ int) {
			f.slow = func(w, _ int) float64 { return map[bool]float64{true: 1.3, false: 1}[w == 3] }
		}},
		"leak": {6 * 60, func(f *fleet, _ int) {
			f.turn(3)
			f.leak = func(w int) float64 { return map[bool]float64{true: 0.01, false: 0}[w == 3] }
		}},
	}
	for what, h := range harms {
		in, late, most := 0, 0, 0
		for seed := range uint64(*weeks) {
			for name, f := range heldOut(9001 + seed) {
				n := foundIn(f, h.do, h.within)
				if in, most = in+1, max(most, n); n == 0 {
					late++
					t.Logf("%s in %s, seed %d: not within %d minutes", what, name, seed, h.within)
				}
			}
		}
		t.Logf("%s: found %d of %d in time, the last after %d minutes", what, in-late, in, most)
		if late*20 > in {
			t.Errorf("%s: %d of %d not within %d minutes", what, late, in, h.within)
		}
	}
}
