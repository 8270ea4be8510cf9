package balancer

import (
	"io"
	"syscall"

	"roundhouse/balancer/rawio"
)

// atOnce is how much of a long body the door is woken for, where so much is to
// come: a wake costs more than the copy of what a fast client sends meanwhile.
const atOnce = 64 << 10

// gathering is a body that is read into one buffer of its size.
type gathering struct {
	g     *guard
	rest  []byte // where what is still to come goes
	most  int    // the bytes to be woken for, at most
	asked int    // and those that the kernel was told
	err   error
}

// gather reads what is still to come of a body into rest, which has its size.
func (g *guard) gather(rest []byte) error {
	if g.raw == nil {
		return g.gatherBehind(rest)
	}
	b := &gathering{g: g, rest: rest, most: atOnce, asked: 1}
	for {
		g.arm()
		err := g.raw.Read(b.take)
		if err == nil {
			return b.err
		}
		// Of a slow client less may have come than the door was to be woken for.
		had := len(b.rest)
		b.most = 1
		g.raw.Control(func(fd uintptr) { b.take(fd) })
		switch {
		case b.err != nil:
			return b.err
		case len(b.rest) == 0:
			return nil
		case len(b.rest) == had || !timedOut(err):
			return err
		}
	}
}

// take is called by the poller when so many bytes may have come as were asked
// for, and reports whether the body is whole, or never will be.
func (b *gathering) take(fd uintptr) bool {
	for len(b.rest) > 0 {
		n, err := rawio.Read(fd, b.rest)
		switch {
		case err == syscall.EAGAIN:
			b.ask(fd, min(len(b.rest), b.most))
			b.g.arm()
			return false
		case err != 0:
			b.err = err
		case n == 0:
			b.err = io.EOF
		}
		if b.err != nil {
			break
		}
		b.rest = b.rest[n:]
		b.g.took(n)
	}
	b.ask(fd, 1)
	return true
}

// ask tells the kernel how many bytes to wake the reader for.
func (b *gathering) ask(fd uintptr, n int) {
	if n != b.asked {
		b.asked = n
		rawio.WakeAt(fd, n)
	}
}

// gatherBehind is gather where the connection is no plain socket.
func (g *guard) gatherBehind(rest []byte) error {
	for len(rest) > 0 {
		g.arm()
		n, err := g.sock.Read(rest)
		if err != nil {
			return err
		}
		rest = rest[n:]
		g.took(n)
	}
	return nil
}
