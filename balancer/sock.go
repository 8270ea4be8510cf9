package balancer

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// bufSize is what one read takes from a socket at most.
const bufSize = 16 << 10

// buffers are lent for the time between a read and the next wait.
var buffers = sync.Pool{New: func() any { return new([bufSize]byte) }}

// sock is a connection that can wait for bytes without holding a buffer for
// them: 10 000 idle streams then hold none.
type sock struct {
	net.Conn
	raw syscall.RawConn // nil where the connection is not a plain socket
	try func(fd uintptr) bool
	buf *[bufSize]byte
	n   int
	err error

	readBy, writeBy int64 // the deadlines that are set, by the door's clock
}

// plain makes a sock of a connection. Where it is no plain socket (TLS), a
// read waits with its buffer in hand.
func (s *sock) init(c net.Conn) {
	s.Conn = c
	sc, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return
	}
	s.raw = raw
	s.try = s.tryRead
}

// tryRead is called by the poller whenever the socket may hold bytes.
func (s *sock) tryRead(fd uintptr) bool {
	s.buf = buffers.Get().(*[bufSize]byte)
	for {
		s.n, s.err = syscall.Read(int(fd), s.buf[:])
		switch {
		case s.err == syscall.EINTR:
			continue
		case s.err == syscall.EAGAIN:
			buffers.Put(s.buf)
			s.buf = nil
			return false
		case s.n == 0 && s.err == nil:
			s.err = io.EOF
		}
		return true
	}
}

// receive waits for bytes and returns them in a lent buffer, which the caller
// gives back with drop. On an error there is no buffer.
func (s *sock) receive() (*[bufSize]byte, int, error) {
	if s.raw == nil {
		buf := buffers.Get().(*[bufSize]byte)
		n, err := s.Conn.Read(buf[:])
		if n > 0 {
			return buf, n, nil
		}
		buffers.Put(buf)
		return nil, 0, err
	}
	s.buf, s.n, s.err = nil, 0, nil
	err := s.raw.Read(s.try)
	buf, n := s.buf, s.n
	s.buf = nil
	if err == nil {
		err = s.err
	}
	if err != nil && buf != nil {
		buffers.Put(buf)
		buf = nil
	}
	if err != nil {
		return nil, 0, err
	}
	return buf, n, nil
}

// readIn bounds the next reads. A deadline that is set and less than an eighth
// off stays: setting one costs as much as a small read.
func (s *sock) readIn(now int64, span time.Duration) {
	if near(s.readBy-now, int64(span)) {
		return
	}
	s.readBy = now + int64(span)
	s.Conn.SetReadDeadline(time.Now().Add(span))
}

// writeIn bounds the next writes as readIn does reads.
func (s *sock) writeIn(now int64, span time.Duration) {
	if near(s.writeBy-now, int64(span)) {
		return
	}
	s.writeBy = now + int64(span)
	s.Conn.SetWriteDeadline(time.Now().Add(span))
}

func near(left, span int64) bool { return left <= span && left > span-span/8 }

func drop(buf *[bufSize]byte) {
	if buf != nil {
		buffers.Put(buf)
	}
}

// timedOut reports whether an error says that a deadline passed.
func timedOut(err error) bool {
	if os.IsTimeout(err) {
		return true
	}
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}
