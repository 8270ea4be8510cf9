package ledger

import (
	"math"
	"testing"
)

// TestOldCounters: what a worker's counters show for a while, and then all at once, is
// measured as well as what they show as it comes.
func TestOldCounters(t *testing.T) {
	for _, c := range []struct {
		name   string
		age    int     // looks for which the counters show the same
		cached float64 // of what is believed
		counts bool
	}{
		{"fresh, all of it cached", 1, 1, true}, {"a second old", 4, 1, true}, {"five seconds old", 20, 1, true},
		{"five seconds old, half of it cached", 20, 0.5, true}, {"never counted", 1, 0, false},
	} {
		var h Hits
		queries, hits, shown, shownHits := 0.0, 0.0, 0.0, 0.0
		n := 0
		for look := range 400 { // four a second
			prompts := 3 + look*7%5
			for range prompts {
				h.Came(4000, 2400)
			}
			if c.counts {
				queries, hits = queries+4000*float64(prompts), hits+2400*c.cached*float64(prompts)
			}
			if look%c.age == 0 {
				shown, shownHits = queries, hits
			}
			m, ok := h.Count(shown, shownHits, 1, 8000)
			if !ok || c.counts && m.AtMost && float64(m.Cached) >= float64(m.Believed)*c.cached {
				continue // other traffic may be among it
			}
			n++
			if share := float64(m.Cached) / float64(m.Believed); math.Abs(share-c.cached) > 0.05 {
				t.Errorf("%s: at look %d %.2f of what was believed was cached", c.name, look, share)
			}
		}
		if n == 0 {
			t.Errorf("%s: nothing was measured", c.name)
		}
	}
}
