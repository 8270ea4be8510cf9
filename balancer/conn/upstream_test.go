package conn

import (
	"net"
	"testing"
	"time"
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
