package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// spin is how long a thread looks for work before it sleeps. Longer would take
// the processor from those who share it: HTTP handlers, other workers.
const spin = 50 * time.Microsecond

// team is the threads that run a step together. The caller of run is thread 0;
// the others wait for it, each locked to a thread of the system. One hand-off
// starts a step; within it threads meet at barriers.
type team struct {
	threads int
	home    int      // the processor of the caller of run while it runs; -1: any
	free    affinity // where the caller may be otherwise
	job     func(thread int)
	begun   gate // opens when a job is there
	met     gate // opens when all have arrived
	arrived atomic.Int32
	_       [60]byte
	closed  atomic.Bool
	gone    sync.WaitGroup
}

// gate is a counter that threads wait to see change: at first spinning, then
// asleep.
type gate struct {
	turn     atomic.Uint32
	sleepers atomic.Int32
	bed      bed
	_        [64]byte
}

// open lets everybody pass who waits for the turn after the present one.
func (g *gate) open() {
	g.turn.Add(1)
	if g.sleepers.Load() > 0 {
		g.bed.wake(&g.turn)
	}
}

// wait returns once the turn is no longer seen.
func (g *gate) wait(seen uint32) {
	const looks = 200
	for range looks {
		if g.turn.Load() != seen {
			return
		}
		pause()
	}
	for start := time.Now(); time.Since(start) < spin; {
		for range looks {
			if g.turn.Load() != seen {
				return
			}
			pause()
		}
	}
	g.sleepers.Add(1)
	for g.turn.Load() == seen {
		g.bed.sleep(&g.turn, seen)
	}
	g.sleepers.Add(-1)
}

// newTeam starts threads-1 workers; worker i runs on processor cpus[i], where
// cpus are given. apart says that they are of several memory nodes: then the caller
// of run is on cpus[0] while it runs, or what it packs would lie anywhere.
func newTeam(threads int, cpus []int, apart bool) *team {
	t := &team{threads: threads, home: -1}
	if apart {
		t.home, t.free = cpus[0], affinityNow()
	}
	for i := 1; i < threads; i++ {
		t.gone.Add(1)
		go t.work(i, cpus)
	}
	return t
}

func (t *team) work(thread int, cpus []int) {
	defer t.gone.Done()
	runtime.LockOSThread() // not unlocked: an affinity must not leak to other goroutines
	if len(cpus) > 0 {
		pin(cpus[thread%len(cpus)])
	}
	for turn := uint32(0); ; turn++ {
		t.begun.wait(turn)
		if t.closed.Load() {
			return
		}
		t.job(thread)
		t.barrier()
	}
}

// run has every thread run the job, and returns when all have.
func (t *team) run(job func(thread int)) {
	if t.threads == 1 {
		job(0)
		return
	}
	if t.home >= 0 {
		runtime.LockOSThread()
		pin(t.home)
		defer func() {
			unpin(&t.free)
			runtime.UnlockOSThread()
		}()
	}
	t.job = job
	t.begun.open()
	job(0)
	t.barrier()
}

// barrier returns when all threads have called it.
func (t *team) barrier() {
	if t.last() {
		t.release()
	}
}

// last is a barrier at which the last thread can do something alone: it gets
// true at once, and the others wait until it calls release.
func (t *team) last() bool {
	if t.threads == 1 {
		return true
	}
	turn := t.met.turn.Load()
	if int(t.arrived.Add(1)) == t.threads {
		return true
	}
	t.met.wait(turn)
	return false
}

// release lets the threads go on that wait for the last one.
func (t *team) release() {
	if t.threads > 1 {
		t.arrived.Store(0)
		t.met.open()
	}
}

// close ends the workers and waits for them.
func (t *team) close() {
	if t.closed.Swap(true) {
		return
	}
	t.begun.open()
	t.gone.Wait()
}
