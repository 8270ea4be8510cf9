package swarm

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// atEnd ends what tests share, where they share anything.
var atEnd = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	atEnd()
	if leak := goleak.Find(); leak != nil && code == 0 {
		fmt.Fprintln(os.Stderr, leak)
		code = 1
	}
	os.Exit(code)
}
