package cpu

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bed is where threads sleep until a number changes. On Linux the kernel puts
// the thread itself to sleep and wakes it: a thread that is locked to its
// goroutine would otherwise be woken by way of another, and that takes as long
// as a small matrix.
type bed struct{}

// Futex operations within one process.
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

// sleep returns once wake was called, or at once if the number is not what was
// seen. It may also return for no reason.
func (*bed) sleep(number *atomic.Uint32, seen uint32) {
	_, _, _ = syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(number)), futexWait, uintptr(seen), 0, 0, 0)
}

// wake wakes all who sleep until the number changes.
func (*bed) wake(number *atomic.Uint32) {
	const everybody = 1<<31 - 1
	_, _, _ = syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(number)), futexWake, everybody, 0, 0, 0)
}
