package patience

import (
	"testing"
	"time"
)

func TestPassed(t *testing.T) {
	for _, c := range []struct {
		load  float64
		cores int
		want  time.Duration
	}{{0, 2, time.Minute}, {1.5, 2, time.Minute}, {2, 2, time.Minute}, {4, 2, 30 * time.Second}, {60, 2, 2 * time.Second}, {3, 1, 20 * time.Second}} {
		if got := passed(time.Minute, c.load, c.cores); got != c.want {
			t.Errorf("a minute at a load of %v on %d cores counts as %v; want %v", c.load, c.cores, got, c.want)
		}
	}
}

// A limit is not over before its time, and is over at last.
func TestLimit(t *testing.T) {
	if For(time.Hour).Over() {
		t.Error("an hour is over at once")
	}
	if l := For(time.Hour); !(&Limit{left: l.left, at: l.at.Add(-1e6 * time.Hour)}).Over() {
		t.Error("an hour is not over after a hundred years")
	}
	if !For(0).Over() {
		t.Error("nothing is not over at once")
	}
	ctx, cancel := Context(t.Context(), 0)
	defer cancel()
	<-ctx.Done()
}
