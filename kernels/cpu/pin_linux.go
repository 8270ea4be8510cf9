package cpu

import "golang.org/x/sys/unix"

// pin ties the calling thread to one processor. Where the cpuset does not
// allow it the thread stays free, which costs speed alone.
func pin(cpu int) {
	var set unix.CPUSet
	set.Set(cpu)
	_ = unix.SchedSetaffinity(0, &set)
}

// affinity is the processors that a thread may run on.
type affinity = unix.CPUSet

// affinityNow is the calling thread's.
func affinityNow() (a affinity) {
	_ = unix.SchedGetaffinity(0, &a)
	return a
}

// unpin gives the calling thread the processors of before.
func unpin(a *affinity) { _ = unix.SchedSetaffinity(0, a) }
