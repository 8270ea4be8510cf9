package swarm

import (
	"os"
	"testing"

	"roundhouse/test/leaks"
)

// atEnd ends what tests share, where they share anything.
var atEnd = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	atEnd()
	os.Exit(leaks.Check(code))
}
