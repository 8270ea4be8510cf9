package campaign

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"roundhouse/test/program"
)

// clocks has the programs built so that their clock can jump. That is another build of
// everything, which short runs leave to the simulation of supervisor/core: there clocks
// jump too.
var clocks = flag.Bool("clocks", false, "let the clock on the wall jump; builds the programs anew")

// jumping are the programs with a time.Now whose wall part is ahead by as many seconds as
// the file "jump" beside the program says. Its steady part, and with it every timer, goes
// on as it was: so it is when an operator or NTP sets a clock, and when the machine has
// slept, since CLOCK_MONOTONIC stands still in a sleep. The machine's own clock stays,
// because other programs read it.
var jumping program.Set

// jumpSource is read into package time. It asks for no system call but at the start:
// the file is mapped.
const jumpSource = `package time

import (
	"syscall"
	"unsafe"
)

var jump = func() *int64 {
	path := make([]byte, 4096)
	n, err := syscall.Readlink("/proc/self/exe", path)
	for err == nil && n > 0 && path[n-1] != '/' {
		n--
	}
	fd, err := syscall.Open(string(path[:n])+"jump", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return new(int64)
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	syscall.Close(fd)
	if err != nil {
		return new(int64)
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}()
`

// jumpingPrograms are built for a run with -clocks.
func jumpingPrograms(t *testing.T) *program.Set {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(lib, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	const reads = "\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(text), reads) != 1 {
		t.Fatalf("time.Now of %s does not read the clock by %q: the overlay needs another place", runtime.Version(), reads)
	}
	dir := t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	for name, source := range map[string]string{"time.go": strings.Replace(string(text), reads, reads+"\tsec += *jump\n", 1), "jump.go": jumpSource} {
		path := filepath.Join(dir, name)
		overlay["Replace"][filepath.Join(lib, name)] = path
		if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	jumping.Flags = []string{"-trimpath", "-overlay", filepath.Join(dir, "overlay.json")}
	if err := os.WriteFile(jumping.Flags[2], list, 0o600); err != nil {
		t.Fatal(err)
	}
	return &jumping
}

// setClock sets the clock of the programs in the system's folder.
func (s *trial) setClock(ahead time.Duration) {
	s.ahead = ahead
	var seconds [8]byte
	binary.NativeEndian.PutUint64(seconds[:], uint64(ahead/time.Second))
	f, err := os.OpenFile(filepath.Join(filepath.Dir(s.binary), "jump"), os.O_WRONLY|os.O_CREATE, 0o644)
	if err == nil {
		_, err = f.WriteAt(seconds[:], 0)
		f.Close()
	}
	if err != nil {
		s.t.Error(err)
	}
}

// jumps are where a clock on the wall goes: what a time zone set by mistake, a battery
// that is empty and a wrong date do.
var jumps = []time.Duration{time.Hour, -time.Hour, 365 * 24 * time.Hour, -365 * 24 * time.Hour}

// clockJumps lets the clock on the wall jump, and has it right again at the end of half
// of the times.
func clockJumps(s *trial) {
	s.setClock(jumps[s.r.IntN(len(jumps))])
	s.tellsTime()
	if s.r.IntN(2) == 0 {
		<-time.After(time.Duration(s.r.IntN(1500)) * time.Millisecond)
		s.setClock(0)
	}
}

// suspended lets the machine sleep for hours: every process stands still meanwhile, and
// when it wakes, the clock on the wall is ahead. Nothing of ours reads the clock that
// counts sleep as well (supervisor TestSleepIsNotCounted).
func suspended(s *trial) {
	s.freezeFor(func() {
		<-time.After(time.Duration(s.r.IntN(1000)) * time.Millisecond)
		s.setClock(s.ahead + time.Duration(1+s.r.IntN(8))*time.Hour)
	})
	s.tellsTime()
}

// tellsTime waits until the supervisor tells the time that it is told.
func (s *trial) tellsTime() {
	var shown struct{ At time.Time }
	s.Until("the supervisor tells the time that it is told", func() bool {
		return s.Get("/api/workers", &shown) && time.Until(shown.At).Round(time.Minute) == s.ahead
	})
}
