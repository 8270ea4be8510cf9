package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// The ports that are lent, less those that the kernel gives away itself. Below are
// the numbers that people choose for their services.
const first, last = 15000, 65535

// Free lends a port that nobody else has or is given until the test has ended.
func Free(t testing.TB) int {
	t.Helper()
	port, giveBack, err := Lend()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(giveBack)
	return port
}

// Lend is Free for a program that is no test, or for longer than one: until giveBack
// is called, which is to be kept for that.
func Lend() (port int, giveBack func(), err error) {
	port, lock, err := lend(filepath.Join(os.TempDir(), "roundhouse-ports"), given())
	if err != nil {
		return 0, nil, err
	}
	return port, func() { lock.Close() }, nil
}

// Address lends a port and names it on the loopback.
func Address(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", Free(t))
}

// given is the range of ports that the kernel gives away; Linux' usual one where
// it does not say.
func given() (r [2]int) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(text), &r[0], &r[1])
	}
	if err != nil {
		return [2]int{32768, 60999}
	}
	return r
}

// lend locks a port that is free, has no lock, and lies outside of a range. Closing
// the lock gives it back. It takes any, each as likely as the others, so that a port
// which was just given back, and to which some client may still hold a connection,
// hardly comes again.
func lend(dir string, without [2]int) (int, *os.File, error) {
	if err := share(dir); err != nil {
		return 0, nil, err
	}
	for _, at := range rand.Perm(last - first + 1) {
		port := first + at
		if port >= without[0] && port <= without[1] {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDONLY, 0o644)
		if errors.Is(err, os.ErrPermission) {
			continue // another user's
		}
		if err != nil {
			return 0, nil, err
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && free(port) {
			return port, lock, nil
		}
		lock.Close()
	}
	return 0, nil, fmt.Errorf("no port from %d to %d is free outside of %d to %d", first, last, without[0], without[1])
}

// share makes the folder of the locks, which all users of the machine have in common.
func share(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil
		}
		return err
	}
	return os.Chmod(dir, os.ModeSticky|0o777)
}

// free reports whether one may listen at a port of every address.
func free(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
