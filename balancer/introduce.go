package balancer

import (
	"crypto/tls"
	"errors"
	"io"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/balancer/wire"
)

// introduce notes whom a proxy has named as the client.
func (g *guard) introduce() error {
	from, err := g.introduced()
	if errors.Is(err, wire.ErrProxy) {
		g.d.log.Warn("a proxy's connection is refused", "proxy", g.peer().String(), "error", err.Error())
	}
	g.proxied = from
	return err
}

// introduced reads the PROXY header that the connection begins with, before anything
// of TLS; the zero address where it begins with none, as a proxy's own looks at the
// door's health do, or where the header names nobody. It waits no longer than for the
// head of a request.
func (g *guard) introduced() (from netip.AddrPort, err error) {
	c := g.Conn
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return from, nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return from, err
	}
	g.SetReadDeadline(time.Now().Add(g.limits.headerRead))
	buf := make([]byte, wire.MostProxy)
	n, fault := 0, error(nil)
	err = raw.Read(func(fd uintptr) bool {
		var came int
		for {
			// What does not belong to the header is for others to read.
			came, _, fault = unix.Recvfrom(int(fd), buf, unix.MSG_PEEK|unix.MSG_DONTWAIT)
			if fault != unix.EINTR {
				break
			}
		}
		switch {
		case fault == unix.EAGAIN:
			return false
		case fault != nil:
			return true
		case came == 0:
			fault = io.EOF
			return true
		}
		from, n, fault = wire.ReadProxy(buf[:came])
		return n > 0 || fault != nil
	})
	switch {
	case err != nil:
		return from, err
	case errors.Is(fault, wire.ErrNoProxy):
		return from, nil
	case fault != nil:
		return from, fault
	}
	_, err = io.ReadFull(c, buf[:n])
	return from, err
}
