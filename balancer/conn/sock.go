package conn

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/balancer/conn/rawio"
	"roundhouse/balancer/wire"
)

// Sock is a connection that can wait for bytes without holding a buffer for
// them: 10 000 idle streams then hold none. One goroutine reads it at a time,
// and one writes.
type Sock struct {
	net.Conn
	raw syscall.RawConn // nil where the connection is not a plain socket

	read func(fd uintptr) bool
	into []byte // where the bytes go; nil: into a lent buffer
	buf  *[BufSize]byte
	n    int
	err  error

	write func(fd uintptr) bool
	ask   *[]byte // of heads; what the next read is to write first
	look  bool    // and before that, whether the other end has ended
	out   []byte  // what is still to be written
	more  bool    // and is not the end
	fault error

	waited bool // a read has found nothing yet
	below  bool // TLS reads from it, a record in several reads
	late   bool // the last of them found bytes behind its time

	readBy, writeBy int64        // the deadlines that are set, by the door's clock
	due             atomic.Int64 // that for reads, from epoch on; 0: it is no time limit
}

var epoch = time.Now()

// Init makes a sock of a connection. Where it is no plain socket (TLS), a read
// waits with its buffer in hand.
func (s *Sock) Init(c net.Conn) {
	s.Conn = c
	sc, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return
	}
	s.raw, s.read, s.write = raw, s.TryRead, s.tryWrite
}

// plain is a plain socket below TLS.
type plain struct{ Sock }

// SyscallConn implements syscall.Conn.
func (p *plain) SyscallConn() (syscall.RawConn, error) { return p.raw, nil }

// SetReadDeadline implements net.Conn.
func (p *plain) SetReadDeadline(t time.Time) error {
	p.due.Store(ahead(t))
	return p.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (p *plain) SetDeadline(t time.Time) error {
	p.due.Store(ahead(t))
	return p.Conn.SetDeadline(t)
}

// ahead is when a time limit is over; 0 if it is none, or is to end a wait at once.
func ahead(t time.Time) int64 {
	if t.After(time.Now()) {
		return int64(t.Sub(epoch))
	}
	return 0
}

// Below is the connection that TLS is to read from and write to: of a plain socket one
// that looks once more at what came while the program stood still.
func Below(c net.Conn) net.Conn {
	p := &plain{}
	if p.Init(c); p.raw == nil {
		return c
	}
	p.below = true
	return p
}

// TryRead is called by the poller whenever the socket may hold bytes.
func (s *Sock) TryRead(fd uintptr) bool {
	if s.ask != nil {
		if s.look {
			if s.err = s.ended(fd); s.err != nil {
				return true
			}
		}
		// The poller was told before this write that the socket is to be watched, so
		// that an answer to it is never overlooked, and need not be looked for yet.
		if s.err = s.writeAsk(fd); s.err != nil {
			return true
		}
		s.waited = true
		return false
	}
	into := s.into
	if into == nil {
		s.buf = buffers.Get().(*[BufSize]byte)
		into = s.buf[:]
	}
	n, err := rawio.Read(fd, into)
	switch {
	case err == syscall.EAGAIN:
		if s.buf != nil {
			buffers.Put(s.buf)
			s.buf = nil
		}
		s.waited = true
		return false
	case err != 0:
		s.err = err
	case n == 0:
		s.err = io.EOF
	}
	s.n = n
	return true
}

// ended reports why nothing can be asked of the other end any more, nil while
// something can.
func (s *Sock) ended(fd uintptr) error {
	buf := buffers.Get().(*[BufSize]byte)
	defer buffers.Put(buf)
	switch n, err := rawio.Read(fd, buf[:]); {
	case err == syscall.EAGAIN:
		return nil
	case err != 0:
		return err
	case n == 0:
		return errUnread
	}
	return wire.ErrAnswer // to nothing that was asked
}

// errUnread is of an end before the other end has read all that was written to it. It
// counts as the kernel's reset, which comes a moment too late to be read in its place.
var errUnread = fmt.Errorf("the connection had ended before what was written was read: %w", syscall.ECONNRESET)

// unread reports whether the other end has ended without reading all that was written to
// it: its kernel has answered that with a reset, or has not acknowledged it.
func (s *Sock) unread() (is bool) {
	if s.raw == nil {
		return false
	}
	_ = s.raw.Control(func(fd uintptr) { // a closed one tells nothing
		if code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && code != 0 {
			is = true
			return
		}
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		is = err == nil && info.Unacked > 0
	})
	return is
}

// writeAsk writes what the other end is asked.
func (s *Sock) writeAsk(fd uintptr) error {
	lent := s.ask
	s.out, s.more, s.fault, s.ask = *lent, false, nil, nil
	if !s.tryWrite(fd) {
		if err := s.raw.Write(s.write); err != nil {
			s.fault = err
		}
	}
	s.out = nil
	GiveHead(lent)
	if s.fault != nil {
		// Wrapped, so that a time out of this is not taken for one of the answer.
		return fmt.Errorf("writing the request: %w", s.fault)
	}
	return nil
}

// tryWrite is called by the poller whenever the socket may take bytes.
func (s *Sock) tryWrite(fd uintptr) bool {
	for len(s.out) > 0 {
		n, err := rawio.Write(fd, s.out, s.more)
		if err != 0 {
			if err == syscall.EAGAIN {
				return false
			}
			s.fault = err
			return true
		}
		s.out = s.out[n:]
	}
	return true
}

// Read implements net.Conn.
func (s *Sock) Read(p []byte) (int, error) {
	if s.raw == nil || len(p) == 0 {
		return s.Conn.Read(p)
	}
	s.into, s.n, s.err = p, 0, nil
	err := s.await(s.read)
	s.into = nil
	if err == nil {
		err = s.err
	}
	return s.n, err
}

// WriteFirst has the next read write what lent holds, which is given back to
// the pool of heads then. It is for bytes that the other end answers: what it has sent
// before is looked at only after that, unless look says otherwise.
func (s *Sock) WriteFirst(lent *[]byte, look bool) error {
	if s.raw == nil {
		_, err := s.Conn.Write(*lent)
		GiveHead(lent)
		return err
	}
	s.ask, s.look = lent, look
	return nil
}

// Write implements net.Conn.
func (s *Sock) Write(p []byte) (int, error) { return s.Push(p, false) }

// Push writes p; more says that what follows is to leave with it.
func (s *Sock) Push(p []byte, more bool) (int, error) {
	if s.raw == nil {
		return s.Conn.Write(p)
	}
	s.out, s.more, s.fault = p, more, nil
	err := s.raw.Write(s.write)
	if err == nil {
		err = s.fault
	}
	n := len(p) - len(s.out)
	s.out = nil
	return n, err
}

// Receive waits for bytes and returns them in a lent buffer, which the caller
// gives back with drop. On an error there is no buffer.
func (s *Sock) Receive() (*[BufSize]byte, int, error) {
	if s.raw == nil {
		buf := buffers.Get().(*[BufSize]byte)
		n, err := s.Conn.Read(buf[:])
		if n > 0 {
			return buf, n, nil
		}
		buffers.Put(buf)
		return nil, 0, err
	}
	if err := s.Wait(s.read); err != nil {
		return nil, 0, err
	}
	buf := s.buf
	s.buf = nil
	return buf, s.n, nil
}

// Wait waits until ready, which the poller calls with the descriptor whenever
// the socket may hold bytes and which calls tryRead, says that it is over.
func (s *Sock) Wait(ready func(fd uintptr) bool) error {
	s.buf, s.n, s.err = nil, 0, nil
	err := s.await(ready)
	if err == nil {
		err = s.err
	}
	if err != nil {
		Drop(s.buf)
		s.buf = nil
	}
	return err
}

// await is the poller's wait. Where the time ran out meanwhile, the socket is looked at
// once more: of a program that stood still (a machine that was paused, or has no core for
// it) the deadline has passed by the time that it sees what came long before. A deadline
// that had passed before is one, but for the rest of what is read so for TLS.
func (s *Sock) await(ready func(fd uintptr) bool) error {
	s.waited = false
	late := s.late
	s.late = false
	for {
		err := s.raw.Read(ready)
		if err == nil || !s.waited && !late || !TimedOut(err) {
			return err
		}
		if err = s.again(ready, err); err == nil || !s.lenient() {
			return err
		}
	}
}

// again looks once more, and returns the error of the wait if there is nothing.
func (s *Sock) again(ready func(fd uintptr) bool, late error) (err error) {
	err = late
	_ = s.raw.Control(func(fd uintptr) { // of a closed one the time out stays
		if ready(fd) {
			err = nil
			s.late = s.below
		}
	})
	return err
}

// The program stood still if it sees a deadline so much too late. A client that the same
// has held up, or whose bytes are sent once more to a machine that was paused, then has
// so much time again, at most mostAgain.
const (
	stoodStill = time.Second
	mostAgain  = 5 * time.Second
)

// lenient sets the deadline anew if the program stood still, and reports whether it did.
func (s *Sock) lenient() bool {
	due := s.due.Load()
	late := time.Since(epoch) - time.Duration(due)
	if due == 0 || late < stoodStill {
		return false
	}
	s.limit(min(late, mostAgain))
	return true
}

// Polled reports whether the poller reads and writes the connection: a plain
// socket, whose descriptor can also be passed on.
func (s *Sock) Polled() bool { return s.raw != nil }

// Descriptor is the connection's, which stays its own.
func (s *Sock) Descriptor() (fd int, err error) {
	err = s.raw.Control(func(of uintptr) { fd = int(of) })
	return fd, err
}

// Taken returns the bytes that tryRead has read, in their lent buffer.
func (s *Sock) Taken() (buf *[BufSize]byte, n int) {
	buf, s.buf = s.buf, nil
	return buf, s.n
}

// Failed is why tryRead has read nothing.
func (s *Sock) Failed() error { return s.err }

// Fail ends the wait with an error.
func (s *Sock) Fail(err error) { s.err = err }

// Rearm has the next readIn set its deadline, whatever is set.
func (s *Sock) Rearm() { s.readBy = 0 }

// Expired reports whether the deadline that readIn has set is over.
func (s *Sock) Expired(now int64) bool { return s.readBy <= now }

// SetDeadline implements net.Conn. fasthttp takes deadlines away when it lets a
// connection go; readIn and writeIn then set their own again.
func (s *Sock) SetDeadline(t time.Time) error {
	s.readBy, s.writeBy = 0, 0
	s.due.Store(0)
	return s.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (s *Sock) SetReadDeadline(t time.Time) error {
	s.readBy = 0
	s.due.Store(0)
	return s.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (s *Sock) SetWriteDeadline(t time.Time) error {
	s.writeBy = 0
	return s.Conn.SetWriteDeadline(t)
}

// ReadIn bounds the next reads. A deadline that is set and less than an eighth
// off stays: setting one costs as much as a small read.
func (s *Sock) ReadIn(now int64, span time.Duration) {
	if near(s.readBy-now, int64(span)) {
		return
	}
	s.readBy = now + int64(span)
	s.limit(span)
}

// limit sets the deadline of the reads that follow.
func (s *Sock) limit(span time.Duration) {
	at := time.Now().Add(span)
	s.due.Store(int64(at.Sub(epoch)))
	s.Conn.SetReadDeadline(at)
}

// WriteIn bounds the next writes as readIn does reads.
func (s *Sock) WriteIn(now int64, span time.Duration) {
	if near(s.writeBy-now, int64(span)) {
		return
	}
	s.writeBy = now + int64(span)
	s.Conn.SetWriteDeadline(time.Now().Add(span))
}

func near(left, span int64) bool { return left <= span && left > span-span/8 }

// TimedOut reports whether an error says that a deadline passed.
func TimedOut(err error) bool {
	if os.IsTimeout(err) {
		return true
	}
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}
