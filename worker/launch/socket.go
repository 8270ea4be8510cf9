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
	path string // of a Unix socket, which is removed at the end
}

// reserve binds what o says the worker listens on.
func (o *Options) reserve() (*reserved, error) {
	if o.Socket != "" {
		return reservePath(o.Socket)
	}
	return reserve(o.Host, o.Port)
}

// reservePath binds a Unix socket. A socket that a worker left behind, and to
// which nobody listens, is taken over.
func reservePath(path string) (*reserved, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("no socket for --uds %s: %w", path, err)
	}
	err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: path})
	if errors.Is(err, syscall.EADDRINUSE) {
		if st, e := os.Lstat(path); e == nil && st.Mode()&os.ModeSocket != 0 && abandoned(path) {
			if err = os.Remove(path); err == nil {
				err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: path})
			}
		}
	}
	if err == nil {
		return &reserved{fd: fd, name: path, path: path}, nil
	}
	_ = syscall.Close(fd)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--uds %s is in use, or is no socket; choose another", path)
	}
	return nil, fmt.Errorf("--uds %s cannot be bound: %w", path, err)
}

// abandoned reports whether nobody listens to a socket.
func abandoned(path string) bool {
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
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
	return &reserved{fd: fd, name: name}, nil
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
	if r.path != "" {
		_ = os.Remove(r.path)
		r.path = ""
	}
}
