package leaks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines have for their end.
const patience = time.Minute

// Main runs a package's tests, fails them for what they left running, and ends the
// process. It is the whole of a TestMain.
func Main(m *testing.M, options ...goleak.Option) {
	os.Exit(Check(m.Run(), options...))
}

// Check returns the exit code of tests that ended with code: theirs, or 1 if they
// passed and left something running, which it prints. It is for a TestMain that has
// more to do than Main does.
func Check(code int, options ...goleak.Option) int {
	if code != 0 {
		return code
	}
	if err := find(patience, options...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// None fails a test that has left something running.
func None(t testing.TB, options ...goleak.Option) {
	t.Helper()
	if err := find(patience, options...); err != nil {
		t.Error(err)
	}
}

// find waits for everything to have ended, and returns what has not.
func find(patience time.Duration, options ...goleak.Option) error {
	for late := time.Now().Add(patience); ; {
		err := goleak.Find(options...) // looks again and again for half a second
		if err == nil || time.Now().After(late) {
			return err
		}
	}
}
