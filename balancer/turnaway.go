package balancer

import (
	"errors"
	"io"
	"time"

	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// refuse answers what the guard would not let through. fasthttp does not
// answer where it has read nothing, and would answer the rest in its own
// words, so the guard does it, and lets nothing be written behind it.
func (g *guard) refuse() error {
	var he *wire.HeadError
	var f *surface.Failure
	switch {
	case g.refused:
	case errors.As(g.err, &he):
		g.tell(g.d.refusal(he))
	case errors.As(g.err, &f):
		g.tell(g.d.alone(f, "", surface.RequestID(nil), true))
	}
	return io.EOF
}

// tell writes why a request is refused whose rest is not read.
func (g *guard) tell(answer []byte) {
	g.refused = true
	g.Conn.SetWriteDeadline(time.Now().Add(time.Second))
	g.Sock.Write(answer)
}

// linger reads on for a moment after a refusal, since closing a connection
// with unread bytes would take the answer away from the client.
func (g *guard) linger() {
	if c, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		c.CloseWrite()
	}
	g.Conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	io.CopyN(io.Discard, g.Conn, 4<<20)
}
