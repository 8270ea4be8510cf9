package process

import (
	"fmt"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// A port that is held is nobody's but the one's who names it.
func TestHoldPort(t *testing.T) {
	port, socket, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()

	other, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	// The one port, to choose any of.
	err = unix.SetsockoptInt(other, unix.IPPROTO_IP, unix.IP_LOCAL_PORT_RANGE, port<<16|port)
	if err == nil {
		err = unix.SetsockoptInt(other, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err != nil {
		t.Logf("this kernel has one range of ports for all: %v", err)
	} else if err := unix.Bind(other, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		t.Error("somebody who asked for any port was given the one that is held")
	}

	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("who names it cannot listen there: %v", err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepted.Close()
}
