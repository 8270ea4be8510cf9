package balancer

import "testing"

// TestPace has a door idle, burst, work for a while and become calm.
func TestPace(t *testing.T) {
	p := pacer{percent: 100}
	allocated := uint64(0)
	f := func(steps int, grown, live uint64, percent int, calmed bool) {
		t.Helper()
		for range steps - 1 {
			allocated += grown
			p.look(allocated, live)
		}
		allocated += grown
		if got, calm := p.look(allocated, live); got != percent || calm != calmed {
			t.Errorf("got %d, %v, want %d, %v", got, calm, percent, calmed)
		}
	}
	f(10, 1<<20, 3<<20, 100, false)            // little to do
	f(3, 30<<20, 3<<20, 100, false)            // a burst: many streams begin
	f(1, 1<<20, 3<<20, 100, false)             //
	f(4, 30<<20, 3<<20, 1600, false)           // work
	f(10, 30<<20, 3<<20+1<<18, 1600, false)    // nearly the same stays
	f(1, 30<<20, 12<<20, 400, false)           // more is held now
	f(1, 300<<20, 200<<20, 100, false)         // so much that Go's own pace will do
	f(1, 30<<20, 12<<20, 400, false)           //
	f(paceDown, 1<<20, 12<<20, 400, false)     // a pause
	f(1, 1<<20, 12<<20, 100, true)             // is over, and all is given back
	f(9, 10<<20, 12<<20, 100, false)           // streams begin and stay
	f(1, 1<<20, 12<<20, 100, false)            // once
	f(4, 30<<20, 100<<10, paceMost, false)     // work again, with nothing held
	f(1, 30<<20, 1<<20+1<<18, paceMost, false) //
}
