package conn

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/balancer/wire"
)

// TestIdleUpstreams: a connection that was idle nearly as long as a worker
// keeps its own is not used again, and is closed.
func TestIdleUpstreams(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := NewUpstream("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer u.Retire()
	get := func(now int64) *Conn {
		c, err := u.Get(false, now)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a := get(1)
	a.Put(1)
	if b := get(2); b != a || !b.Reused {
		t.Error("a kept connection is not used again")
	}
	a.Put(2)
	if b := get(2 + int64(5*time.Second)); b == a || b.Reused {
		t.Error("a connection that its worker is about to close is used again")
	} else {
		b.Put(int64(10 * time.Second))
	}
	u.Sweep(int64(10*time.Second) + int64(IdleFor))
	if len(u.idle) != 0 {
		t.Errorf("%d connections are kept beyond their time", len(u.idle))
	}
}

// TestEndBeforeReading tells a worker that ended before it had read a request from one
// that ended after it, which the request may have killed: by what its kernel said, on a
// fresh connection, and on a kept one that is looked at first or not.
func TestEndBeforeReading(t *testing.T) {
	f := func(name string, rested time.Duration, reads, had bool) {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			u, err := NewUpstream("http://" + l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer u.Retire()
			c, err := u.Get(true, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			far, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			ask := []byte("GET / HTTP/1.1\r\n\r\n")
			whole := make([]byte, len(ask))
			ended := make(chan struct{})
			if reads {
				go func() {
					_, _ = io.ReadFull(far, whole)
					far.Close()
					close(ended)
				}()
			} else {
				far.Close()
				arrived(t, &c.Sock)
			}
			if err := c.WriteFirst(&ask, rested > restedAfter); err != nil {
				t.Fatal(err)
			}
			if reads && rested > restedAfter { // the ask goes out with the first read
				defer func() { <-ended }()
			}
			err = c.Answer(new(wire.Answer))
			if got := !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE); err == nil || got != had {
				t.Errorf("%v: had is %v, want %v", err, got, had)
			}
		})
	}
	f("ended, written to", 0, false, false)
	f("ended, looked at first", time.Second, false, false)
	f("read, then ended", 0, true, true)
	f("looked at, read, then ended", time.Second, true, true)
}

// arrived waits for the other end's end.
func arrived(t *testing.T, s *Sock) {
	t.Helper()
	err := s.raw.Read(func(fd uintptr) bool {
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK)
		return err != unix.EAGAIN || n > 0
	})
	if err != nil {
		t.Fatal(err)
	}
}
