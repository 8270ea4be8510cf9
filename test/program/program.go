package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Set is the programs of one package's tests, built once, by the first test that
// needs one. Its zero value is ready; the package's TestMain removes it.
type Set struct {
	Flags []string // further ones of `go build`

	once sync.Once
	dir  string
	err  error
}

// Path builds the programs, unless they are there, and returns where one of them is.
func (s *Set) Path(t testing.TB, name string) string {
	t.Helper()
	s.once.Do(s.build)
	if s.err != nil {
		t.Fatal(s.err)
	}
	return filepath.Join(s.dir, name)
}

func (s *Set) build() {
	if s.dir, s.err = os.MkdirTemp("", "roundhouse-test-"); s.err != nil {
		return
	}
	if s.err = os.Chmod(s.dir, 0o755); s.err != nil { // some run as another user
		return
	}
	build := exec.Command("go", append(append([]string{"build", "-o", s.dir}, s.Flags...), "roundhouse/cmd/...")...)
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		s.err = fmt.Errorf("cannot build the programs: %w\n%s", err, out)
	}
}

// Remove removes what was built.
func (s *Set) Remove() {
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}
