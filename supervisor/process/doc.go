// Package process runs workers, and the door, as processes of this machine.
//
// A child is started through a shim: this program again, which takes its place
// on the CPU and memory nodes, drops rights where it is told to, writes its
// process id into the lock file that it inherits, and executes the real
// program. The lock on run/ID.lock is held by the child itself and by nobody
// else, so it says for certain whether the child lives, whatever became of the
// supervisor; a record beside it says what was started. A successor adopts by
// these two and watches by pidfd, which cannot name a stranger.
//
// Children write to log files of their own, never into pipes of ours: a
// process whose reader died would end on its next line. They lead their own
// session, so that a terminal's Ctrl-C reaches the supervisor alone, which
// then drains them.
package process
