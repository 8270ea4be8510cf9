package supervisor

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// testPID names the variable with the test's own process.
const testPID = "FAKE_TEST_PID"

// endWithTest has a door, a worker or a supervisor of the tests' end when their own
// process has ended, however it did: it outlives its parent by design, and a test that
// failed does not end it.
func endWithTest() {
	pid, err := strconv.Atoi(os.Getenv(testPID))
	if err != nil {
		return // this is the test
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		os.Exit(1)
	}
	go func() {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				os.Exit(1)
			}
		}
	}()
}
