package conn

import (
	"net"
	"testing"
	"time"
)

// ends are both ends of a connection over the loopback.
func ends(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	a, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a.(*net.TCPConn), c.(*net.TCPConn)
}

// What came before the time was over is read, though the program sees both at once:
// it stood still meanwhile. What comes after is not.
func TestStall(t *testing.T) {
	near, far := ends(t)
	var s Sock
	s.Init(near)
	stood := false
	err := s.Wait(func(fd uintptr) bool {
		if stood {
			return s.TryRead(fd)
		}
		stood = true
		if s.TryRead(fd) {
			t.Error("there is nothing to read yet")
		}
		if _, err := far.Write([]byte("in time")); err != nil {
			t.Error(err)
		}
		s.SetReadDeadline(time.Unix(1, 0))
		return false
	})
	buf, n := s.Taken()
	if err != nil || n == 0 || string(buf[:n]) != "in time" {
		t.Fatalf("%v, %d bytes", err, n)
	}
	Drop(buf)

	s.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, _, err := s.Receive(); !TimedOut(err) {
		t.Errorf("nothing came: %v", err)
	}
	if _, err := far.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Receive(); !TimedOut(err) {
		t.Errorf("after its time: %v", err)
	}
}
