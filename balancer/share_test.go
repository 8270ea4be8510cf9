package balancer

import "testing"

// TestShares divides workers among doors: each worker belongs to one door where
// there are enough, and no door goes without.
func TestShares(t *testing.T) {
	for workers := 1; workers <= 40; workers++ {
		for doors := 1; doors <= 12; doors++ {
			has, owners := make([]int, doors), make([]int, workers)
			for d := range doors {
				for w := range workers {
					if takesFirst(w, workers, d, doors) {
						has[d]++
						owners[w]++
					}
				}
			}
			for d, n := range has {
				if n < max(1, workers/doors) || n > max(1, (workers+doors-1)/doors) {
					t.Errorf("%d workers, %d doors: door %d has %d", workers, doors, d, n)
				}
			}
			for w, n := range owners {
				if n < max(1, doors/workers) || n > max(1, (doors+workers-1)/workers) {
					t.Errorf("%d workers, %d doors: %d doors take worker %d first", workers, doors, n, w)
				}
			}
		}
	}
}
