package fleet

import (
	"testing"
	"time"
)

// TestDrainEnd sets the wall clock while a drain runs: its time stays what it was, until
// another is said.
func TestDrainEnd(t *testing.T) {
	wall := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		var e drainEnd
		until := wall.Add(10 * time.Second)
		e.take(&until, wall, 0)
		e.take(&until, wall.Add(jump), int64(5*time.Second)) // the same set, renewed
		if e.over(int64(10 * time.Second)) {
			t.Errorf("clock set by %v: it is over too soon", jump)
		}
		if !e.over(int64(10*time.Second) + 1) {
			t.Errorf("clock set by %v: it is not over in time", jump)
		}
		later := wall.Add(jump + time.Minute)
		e.take(&later, wall.Add(jump), int64(20*time.Second))
		if e.over(int64(80*time.Second)) || !e.over(int64(80*time.Second)+1) {
			t.Errorf("clock set by %v: a later end is not taken up", jump)
		}
		if e.take(nil, wall, 0); e.over(1 << 62) {
			t.Error("a drain without an end is over")
		}
	}
}
