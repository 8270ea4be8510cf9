package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// reserved is a port that is bound, so that nobody else gets it, but does not
// listen: connections to it are refused, as they are to a port where nothing
// is.
type reserved struct {
	fd   int
	name string
}

// reserve binds host:port.
func reserve(host string, port int) (*reserved, error) {
	name := net.JoinHostPort(host, strconv.Itoa(port))
	if host == "" {
		host = "0.0.0.0"
	}
	addrs, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip", host)
	if err != nil || len(addrs) == 0 {
		return nil, fmt.Errorf("--host %s: it names no address of this machine", host)
	}
	addr := addrs[0].Unmap()
	family := syscall.AF_INET
	var sa syscall.Sockaddr = &syscall.SockaddrInet4{Port: port, Addr: [4]byte(addr.AsSlice()[:4])}
	if addr.Is6() {
		family, sa = syscall.AF_INET6, &syscall.SockaddrInet6{Port: port, Addr: addr.As16()}
	}
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("no socket for %s: %w", name, err)
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("no socket for %s: %w", name, err)
	}
	if err := syscall.Bind(fd, sa); err != nil {
		_ = syscall.Close(fd)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("port %d of %s is in use by another process; choose another with --port", port, host)
		}
		return nil, fmt.Errorf("%s cannot be bound: %w", name, err)
	}
	return &reserved{fd, name}, nil
}

// listen begins to accept connections. A port that was bound with
// SO_REUSEADDR by two can only be listened to by one.
func (r *reserved) listen() (net.Listener, error) {
	if err := syscall.Listen(r.fd, syscall.SOMAXCONN); err != nil {
		r.close()
		return nil, fmt.Errorf("%s is in use by another process; choose another with --port", r.name)
	}
	f := os.NewFile(uintptr(r.fd), r.name)
	defer func() { _ = f.Close() }() // FileListener has a copy of its own
	r.fd = -1
	return net.FileListener(f)
}

// close gives the port back.
func (r *reserved) close() {
	if r.fd >= 0 {
		_ = syscall.Close(r.fd)
		r.fd = -1
	}
}
