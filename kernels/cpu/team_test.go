package cpu

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestTeamSleeps holds one thread up for longer than the others spin, before a
// barrier and between jobs: all of them sleep, and none is forgotten.
func TestTeamSleeps(t *testing.T) {
	const threads, jobs = 3, 40
	team := newTeam(threads, nil, false)
	var before, after atomic.Int32
	for job := range int32(jobs) {
		team.run(func(thread int) {
			if thread == int(job)%threads {
				for start := time.Now(); time.Since(start) < 3*spin; {
					pause()
				}
			}
			before.Add(1)
			team.barrier()
			if n := before.Load(); n != threads*(job+1) {
				t.Errorf("job %d: a thread passed the barrier when %d of %d had come", job, n, threads*(job+1))
			}
			after.Add(1)
		})
		if n := after.Load(); n != threads*(job+1) {
			t.Errorf("job %d: run returned when %d of %d threads were done", job, n, threads*(job+1))
		}
		for start := time.Now(); job%4 == 0 && time.Since(start) < 3*spin; {
			pause()
		}
	}
	team.close()
	team.close() // a second time does nothing
}
