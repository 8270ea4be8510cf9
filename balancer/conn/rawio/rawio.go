package rawio

import (
	"reflect"
	"runtime"
	"syscall"
)

// Read reads what the socket holds into p, which must not be empty.
func Read(fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		// recvfrom goes straight to the socket; read takes a twentieth longer, by way of the file.
		n, _, err := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, reflect.ValueOf(&p[0]).Pointer(), uintptr(len(p)), 0, 0, 0)
		runtime.KeepAlive(p)
		if err == 0 {
			return int(n), 0
		}
		if err != syscall.EINTR {
			return 0, err
		}
	}
}

// Write writes what of p the socket takes. more says that the end of p is not
// the end of what is to be sent: the kernel may wait for the rest.
func Write(fd uintptr, p []byte, more bool) (int, syscall.Errno) {
	flags := uintptr(syscall.MSG_NOSIGNAL)
	if more {
		flags |= msgMore
	}
	for {
		n, _, err := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, reflect.ValueOf(&p[0]).Pointer(), uintptr(len(p)), flags, 0, 0)
		runtime.KeepAlive(p)
		if err == 0 {
			return int(n), 0
		}
		if err != syscall.EINTR {
			return 0, err
		}
	}
}

// msgMore is MSG_MORE, which the syscall package leaves out.
const msgMore = 0x8000

// WakeAt has the poller told of a socket when n bytes have come, or the end,
// and not for less. The kernel bounds n by what it would buffer.
func WakeAt(fd uintptr, n int) {
	v := int32(n)
	syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, fd, syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, reflect.ValueOf(&v).Pointer(), 4, 0)
	runtime.KeepAlive(&v)
}
