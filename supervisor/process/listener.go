package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Listener returns a copy of a living child's listening socket of a TCP port,
// as a successor needs the door's. The kernel grants it to root and to whoever
// may trace the child. Which descriptor it is, the child alone knows; so all
// its sockets are looked at.
func (n *Manager) Listener(id string, port int) (*os.File, error) {
	h, ok := readLockOwner(n.file(id, ".lock"))
	if !ok {
		return nil, fmt.Errorf("%s: not running", id)
	}
	pidfd, ok := h.open()
	if !ok {
		return nil, fmt.Errorf("%s: not running", id)
	}
	defer unix.Close(pidfd)
	dir := filepath.Join("/proc", strconv.Itoa(h.pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot see the open files of %s: %w", id, err)
	}
	var refused error
	for _, e := range entries {
		number, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if link, err := os.Readlink(filepath.Join(dir, e.Name())); err != nil || len(link) < 7 || link[:7] != "socket:" {
			continue
		}
		fd, err := unix.PidfdGetfd(pidfd, number, 0)
		if err != nil {
			refused = err
			continue
		}
		unix.CloseOnExec(fd)
		if listens(fd, port) {
			return os.NewFile(uintptr(fd), id), nil
		}
		unix.Close(fd)
	}
	return nil, errors.Join(fmt.Errorf("%s: no socket that listens on port %d is to be had", id, port), refused)
}

// listens reports whether a socket is a TCP listener of a port.
func listens(fd, port int) bool {
	if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || on != 1 {
		return false
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	switch a := address.(type) {
	case *unix.SockaddrInet4:
		return a.Port == port
	case *unix.SockaddrInet6:
		return a.Port == port
	}
	return false
}
