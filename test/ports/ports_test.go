package ports

import (
	"fmt"
	"net"
	"testing"
)

func TestLend(t *testing.T) {
	dir := t.TempDir()
	kernels := [2]int{first, last - 50} // but for fifty, all are its to give
	giveBack := map[int]func(){}
	lendOne := func() int {
		port, lock, err := lend(dir, kernels)
		if err != nil {
			return 0
		}
		if port <= kernels[1] || giveBack[port] != nil {
			t.Fatalf("%d is lent; there are %d", port, len(giveBack))
		}
		giveBack[port] = func() { lock.Close(); delete(giveBack, port) }
		t.Cleanup(func() { lock.Close() })
		return port
	}
	one := lendOne()
	for lendOne() != 0 {
	}
	if n := len(giveBack); n < 10 || n > 50 {
		t.Errorf("%d ports were lent", n) // other programs may have some
	}
	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", one))
	if err != nil {
		t.Fatalf("the port that was lent: %v", err)
	}
	giveBack[one]()
	if got := lendOne(); got == one {
		t.Errorf("somebody listens at %d, and it is lent", got)
	}
	taken.Close()
	for got := lendOne(); got != one; got = lendOne() {
		if got == 0 {
			t.Fatalf("%d was given back, and is not lent", one)
		}
	}
	seen := map[int]bool{} // what was given back hardly comes again
	for range 100 {
		port, lock, err := lend(t.TempDir(), [2]int{32768, 60999})
		if err != nil {
			t.Fatal(err)
		}
		lock.Close()
		seen[port] = true
	}
	if len(seen) < 90 {
		t.Errorf("of 100 ports lent one after the other only %d differ", len(seen))
	}
	if r := given(); r[0] < 1 || r[1] < r[0] {
		t.Errorf("the kernel gives away %v", r)
	}
}
