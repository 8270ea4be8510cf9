package rawio_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"syscall"
	"testing"

	"roundhouse/balancer/conn/rawio"
)

// pair is two ends of a connection, the first as a raw one.
func pair(t *testing.T) (syscall.RawConn, *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	raw, err := a.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return raw, b.(*net.TCPConn)
}

// TestRoundTrip sends bytes both ways while memory is collected all the time.
func TestRoundTrip(t *testing.T) {
	raw, far := pair(t)
	go io.Copy(far, far)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	sent := make([]byte, 1<<20)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	go func() {
		left := sent
		raw.Write(func(fd uintptr) bool {
			for len(left) > 0 {
				n, err := rawio.Write(fd, left[:min(len(left), 5000)], len(left) > 5000)
				if err == syscall.EAGAIN {
					return false
				}
				if err != 0 {
					t.Error(err)
					return true
				}
				left = left[n:]
			}
			return true
		})
	}()
	var got []byte
	for len(got) < len(sent) {
		buf := make([]byte, 4096)
		err := raw.Read(func(fd uintptr) bool {
			n, err := rawio.Read(fd, buf)
			if err == syscall.EAGAIN {
				return false
			}
			if err != 0 || n == 0 {
				t.Fatalf("read %d bytes, %v", n, err)
			}
			got = append(got, buf[:n]...)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, sent) {
		t.Error("other bytes came back than were sent")
	}
}

// TestEnds reports an empty socket, an ended one and one that is gone.
func TestEnds(t *testing.T) {
	raw, far := pair(t)
	buf := make([]byte, 10)
	raw.Control(func(fd uintptr) {
		if _, err := rawio.Read(fd, buf); err != syscall.EAGAIN {
			t.Errorf("an empty socket: got %v", err)
		}
	})
	far.CloseWrite()
	raw.Read(func(fd uintptr) bool {
		n, err := rawio.Read(fd, buf)
		if err == syscall.EAGAIN {
			return false
		}
		if n != 0 || err != 0 {
			t.Errorf("an ended socket: got %d bytes, %v", n, err)
		}
		return true
	})
	if n, err := rawio.Write(^uintptr(0), buf, false); n != 0 || err != syscall.EBADF {
		t.Errorf("no socket: got %d, %v", n, err)
	}
}
