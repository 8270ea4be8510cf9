package control

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
)

// TestListen says which setting asks for an address, why it cannot be had, and
// what to do.
func TestListen(t *testing.T) {
	taken, err := Listen("door.listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, test := range []struct {
		address, want string
		is            error
	}{
		{taken.Addr().String(), "door.listen: another program listens on " + taken.Addr().String() + " already: end that", syscall.EADDRINUSE},
		{"192.0.2.1:0", "door.listen: 192.0.2.1:0 is no address of this machine", syscall.EADDRNOTAVAIL},
		{"127.0.0.1", "door.listen: ", nil},
	} {
		_, err := Listen("door.listen", test.address)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s: got %v; want %s…", test.address, err, test.want)
		}
	}
	if _, ok := taken.(*net.TCPListener); !ok {
		t.Errorf("got a %T; the door hands its listener on as TCP's", taken)
	}
}
