package balancer

import (
	"crypto/tls"
	"net"
	"net/netip"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/http2"
)

// choseHTTP2 ends the handshake of TLS, and reports whether the client speaks HTTP/2. A
// handshake that fails is met again by whoever reads.
func (g *guard) choseHTTP2() bool {
	over, ok := g.Conn.(*tls.Conn)
	if !ok {
		return false
	}
	g.SetDeadline(time.Now().Add(g.limits.headerRead))
	err := over.Handshake()
	g.SetDeadline(time.Time{})
	return err == nil && over.ConnectionState().NegotiatedProtocol == "h2"
}

// beginsHTTP2 reports whether a connection without TLS begins as HTTP/2 does, which the
// client knows that this door speaks. Of a beginning that has not come whole more is
// read.
func (g *guard) beginsHTTP2() bool {
	if _, plain := g.Conn.(*net.TCPConn); !plain || !g.limits.http2 || g.served {
		return false
	}
	for {
		b := g.buf[g.from:g.to]
		n := min(len(b), len(http2.Preface))
		switch {
		case n == 0 || string(b[:n]) != http2.Preface[:n]:
			return false
		case n == len(http2.Preface):
			return true
		case g.to == conn.BufSize:
			return false
		}
		g.Arm()
		n, err := g.Sock.Read(g.buf[g.to:])
		if g.to += n; err != nil {
			return false // the next read meets it again
		}
	}
}

// speakHTTP2 has the connection served on which the client speaks HTTP/2.
func (g *guard) speakHTTP2() {
	d := g.d
	g.served = true
	c := aside{g}
	l := http2.Limits{Streams: g.limits.streams, Headers: g.limits.headers, First: g.limits.headerRead, Idle: g.limits.keepAlive, Write: d.writeWithin}
	if !d.http2.Serve(c, l) {
		c.Close()
	}
}

// openStreams makes connections in memory to a door, each for one stream of a client's.
func openStreams(d *common) http2.Inner {
	return func(client net.Conn) (net.Conn, func()) {
		if !d.room() {
			return nil, nil
		}
		ours, theirs := net.Pipe()
		g := d.guardOf(ours, nil)
		if a, ok := client.RemoteAddr().(*net.TCPAddr); ok {
			g.proxied = netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), uint16(a.Port))
		}
		d.conns.add(g)
		go d.serve(g)
		return theirs, g.Hangup
	}
}

// aside is a client's connection as net/http has it.
type aside struct{ *guard }

// Read implements net.Conn.
func (c aside) Read(p []byte) (int, error) {
	g := c.guard
	if g.to > g.from {
		n := copy(p, g.buf[g.from:g.to])
		if g.from += n; g.from == g.to {
			g.releaseBuf()
		}
		return n, nil
	}
	return g.Sock.Read(p)
}

// Write implements net.Conn. A client that takes nothing is let go, as everywhere.
func (c aside) Write(p []byte) (int, error) {
	if err := c.guard.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close implements net.Conn. Another goroutine may still read, so that the buffer, if
// bytes lie in it, is left to the collector.
func (c aside) Close() error {
	g := c.guard
	g.d.watcher.Remove(g.watch.mark)
	g.d.conns.remove(g)
	return g.Conn.Close()
}

// CloseWrite lets the server wait for a client that still sends: a refusal is not lost
// to a reset then.
func (c aside) CloseWrite() error {
	if half, ok := c.guard.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
