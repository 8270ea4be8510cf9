package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// reservePort asks the kernel for a port of the loopback that nobody has, and holds it:
// while the socket is open the kernel gives the port to nobody who asks for any. Who
// names it, as the worker does, may listen there all the same.
func reservePort() (port int, socket *os.File, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("no socket to hold a port with: %w", err)
	}
	socket = os.NewFile(uintptr(fd), "held port")
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) // as the worker's listener has
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	var address unix.Sockaddr
	if err == nil {
		address, err = unix.Getsockname(fd)
	}
	if err != nil {
		socket.Close()
		return 0, nil, fmt.Errorf("no free port on the loopback: %w", err)
	}
	return address.(*unix.SockaddrInet4).Port, socket, nil
}
