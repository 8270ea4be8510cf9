package conn

import (
	"bytes"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"roundhouse/test/selfsigned"
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

// TestStallTLS is TestStall for a connection under TLS, of whose record a read has a part.
func TestStallTLS(t *testing.T) {
	near, far := ends(t)
	files, err := selfsigned.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	below := Below(near).(*plain)
	server := tls.Server(below, &tls.Config{Certificates: []tls.Certificate{cert}})
	client := tls.Client(far, &tls.Config{RootCAs: files.Pool, ServerName: "127.0.0.1"})
	greeted := make(chan error, 1)
	go func() { greeted <- client.Handshake() }()
	if err := server.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-greeted; err != nil {
		t.Fatal(err)
	}
	stood := false
	below.read = func(fd uintptr) bool {
		if stood {
			return below.TryRead(fd)
		}
		stood = true
		if below.TryRead(fd) {
			t.Error("there is nothing to read yet")
		}
		if _, err := client.Write(bytes.Repeat([]byte("in time "), 1000)); err != nil {
			t.Error(err)
		}
		server.SetReadDeadline(time.Unix(1, 0))
		return false
	}
	var s Sock
	s.Init(server)
	got := make([]byte, 0, 8000)
	for len(got) < 8000 {
		buf, n, err := s.Receive()
		if err != nil {
			t.Fatalf("behind %d bytes: %v", len(got), err)
		}
		got = append(got, buf[:n]...)
		Drop(buf)
	}
	if _, _, err := s.Receive(); !TimedOut(err) {
		t.Errorf("nothing came: %v", err)
	}
	if _, err := client.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Receive(); !TimedOut(err) {
		t.Errorf("after its time: %v", err)
	}
}

// TestStallIsGivenBack has the program stand still over its deadline, and what the client
// sent come only then, as after a pause of the machine: it is read. If it only was a little
// late, the time is over.
func TestStallIsGivenBack(t *testing.T) {
	for _, late := range []time.Duration{stoodStill, stoodStill / 10} {
		near, far := ends(t)
		var s Sock
		s.Init(near)
		looks := 0
		err := s.Wait(func(fd uintptr) bool {
			if s.TryRead(fd) {
				return true
			}
			switch looks++; looks {
			case 1:
				s.due.Store(int64(time.Since(epoch) - late))
				near.SetReadDeadline(time.Unix(1, 0))
			case 3: // behind the look at what has come
				if _, err := far.Write([]byte("in time")); err != nil {
					t.Error(err)
				}
			}
			return false
		})
		buf, n := s.Taken()
		if given := late >= stoodStill; given != (err == nil && string(buf[:n]) == "in time") || given == TimedOut(err) {
			t.Errorf("late by %v: %v, %d bytes", late, err, n)
		}
		Drop(buf)
	}
}
