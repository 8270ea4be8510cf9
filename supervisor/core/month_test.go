package core

import (
	"testing"
	"time"

	"roundhouse/supervisor/schedule"
)

// TestMonth lives through March 2026 in Berlin, minute by minute: a rotation a
// night, also in the night whose 02:30 does not exist, and each of them done.
func TestMonth(t *testing.T) {
	w := newWorld(1)
	w.calm = true
	plan, err := schedule.Parse(schedule.Spec{Cron: "30 2 * * *", Timezone: "Europe/Berlin", Missed: "once"})
	if err != nil {
		t.Fatal(err)
	}
	w.d.Pools = []Pool{{
		Name: "p", MinReady: 2, Drain: 10 * time.Minute, Ready: 10 * time.Minute, Grace: 10 * time.Second, Plan: plan,
		Workers: []Spec{{Name: "1", Hash: "h"}, {Name: "2", Hash: "h"}, {Name: "3", Hash: "h"}},
	}}
	done, last := 0, uint64(0)
	for range 31 * 24 * 60 {
		w.live(time.Minute)
		if err := w.step(); err != nil {
			t.Fatal(err)
		}
		if r := w.sups[0].in.Rotations["p"]; r.State == Done && r.ID != last {
			done, last = done+1, r.ID
		} else if r.State == Halted || r.State == RolledBack {
			t.Fatalf("%+v", r)
		}
	}
	if done != 31 {
		t.Errorf("%d rotations in 31 nights", done)
	}
}
