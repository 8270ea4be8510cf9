package balancer

import (
	"testing"
	"time"
)

// TestTellGap bounds what telling costs: soon after a choice where few workers
// and doors are, at the steady pace where there are many.
func TestTellGap(t *testing.T) {
	f := func(workers, doors int, want time.Duration) {
		t.Helper()
		p := peers{ways: map[string]*way{}, changed: make(chan struct{}, 1)}
		for i := range doors {
			p.ways[string(rune('a'+i))] = &way{}
		}
		if got := p.gap(workers); got != want {
			t.Errorf("%d workers, %d doors: told after %v; want %v", workers, doors, got, want)
		}
	}
	f(8, 3, 5*time.Millisecond)
	f(100, 3, 30*time.Millisecond)
	f(1000, 3, 100*time.Millisecond)
}

// TestChange wakes the teller once for any number of choices, and never where
// there is nobody to be told.
func TestChange(t *testing.T) {
	p := peers{changed: make(chan struct{}, 1)}
	if p.change(); len(p.changed) != 0 {
		t.Error("a door that is alone was woken")
	}
	p.listened.Store(true)
	for range 3 {
		p.change()
	}
	if len(p.changed) != 1 {
		t.Error("a choice did not wake the teller")
	}
}
