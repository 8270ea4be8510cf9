package conn

import (
	"io"
	"syscall"

	"roundhouse/balancer/conn/rawio"
)

// atOnce is how much of a long body the door is woken for, where so much is to
// come: a wake costs more than the copy of what a fast client sends meanwhile.
const atOnce = 64 << 10

// gatherer is told of what gather reads: Arm before each wait, Took after each
// read.
type gatherer interface {
	Arm()
	Took(n int)
}

// gathering is a body that is read into one buffer of its size.
type gathering struct {
	s     *Sock
	by    gatherer
	rest  []byte // where what is still to come goes
	most  int    // the bytes to be woken for, at most
	asked int    // and those that the kernel was told
	err   error
}

// Gather reads what is still to come of a body into rest, which has its size.
func (s *Sock) Gather(rest []byte, by gatherer) error {
	if s.raw == nil {
		return s.gatherBehind(rest, by)
	}
	b := &gathering{s: s, by: by, rest: rest, most: atOnce, asked: 1}
	for {
		by.Arm()
		err := s.raw.Read(b.take)
		if err == nil {
			return b.err
		}
		// Of a slow client less may have come than the door was to be woken for.
		had := len(b.rest)
		b.most = 1
		s.raw.Control(func(fd uintptr) { b.take(fd) })
		switch {
		case b.err != nil:
			return b.err
		case len(b.rest) == 0:
			return nil
		case !TimedOut(err) || len(b.rest) == had && !s.lenient():
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
			b.by.Arm()
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
		b.by.Took(n)
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
func (s *Sock) gatherBehind(rest []byte, by gatherer) error {
	for len(rest) > 0 {
		by.Arm()
		n, err := s.Read(rest)
		if err != nil {
			return err
		}
		rest = rest[n:]
		by.Took(n)
	}
	return nil
}
