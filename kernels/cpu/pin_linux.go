package cpu

import "golang.org/x/sys/unix"

// pin ties the calling thread to one processor. Where the cpuset does not
// allow it the thread stays free, which costs speed alone.
func pin(cpu int) {
	var set unix.CPUSet
	set.Set(cpu)
	_ = unix.SchedSetaffinity(0, &set)
}
