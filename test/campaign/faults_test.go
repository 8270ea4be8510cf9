package campaign

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/test/patience"
	"roundhouse/test/system"
)

// fault is one thing that goes wrong at any moment of a rotation, until all is well again.
type fault struct {
	name  string
	do    func(*trial)
	still bool              // it comes while nothing turns
	ends  bool              // the supervisor or the door ends by it
	needs func(*trial) bool // whether a system can have it; nil: any
}

var faults = []fault{
	{name: "nothing", do: func(*trial) {}},
	{name: "a worker killed", do: func(s *trial) { s.signal(syscall.SIGKILL) }},
	{name: "a worker terminated", do: func(s *trial) { s.signal(syscall.SIGTERM) }},
	{name: "a worker stopped for a while", do: func(s *trial) {
		w := s.signal(syscall.SIGSTOP)
		<-time.After(time.Duration(s.r.IntN(3000)) * time.Millisecond)
		syscall.Kill(w.Place.PID, syscall.SIGCONT) // it may have been ended for its silence
	}},
	{name: "the supervisor stopped for a while", do: func(s *trial) {
		syscall.Kill(s.PID(), syscall.SIGSTOP)
		<-time.After(time.Duration(s.r.IntN(3000)) * time.Millisecond)
		syscall.Kill(s.PID(), syscall.SIGCONT)
	}},
	{name: "the supervisor killed", ends: true, do: func(s *trial) { s.Kill(); s.Up() }},
	{name: "the supervisor and a worker killed", ends: true, do: func(s *trial) { s.signal(syscall.SIGKILL); s.Kill(); s.Up() }},
	{name: "the door killed", ends: true, do: killDoor},
	{name: "all killed", ends: true, do: func(s *trial) { s.allDown(func() {}) }},
	{name: "a worker drained", still: true, do: func(s *trial) {
		w := s.oneOf()
		s.word("/api/workers/" + w.ID + "/drain")
		<-time.After(time.Duration(s.r.IntN(1000)) * time.Millisecond)
		s.word("/api/workers/" + w.ID + "/undrain")
	}},
	{name: "the door's descriptors taken by clients", do: crowdDoor},
	{name: "the supervisor without descriptors", do: func(s *trial) { s.withoutFiles(s.PID()) }},
	{name: "a worker without descriptors", do: func(s *trial) { s.withoutFiles(s.oneOf().Place.PID) }},
	{name: "the door without descriptors", do: func(s *trial) {
		s.c.full.Store(true)
		s.withoutFiles(s.DoorPID())
		s.Until("the door answers again", s.answers)
		s.c.full.Store(false)
	}},
	{name: "the machine frozen", do: func(s *trial) { d := nap(s.r); s.freezeFor(func() { <-time.After(d) }) }},
	{name: "the machine suspended", needs: hasClocks, do: suspended},
	{name: "the clock on the wall jumps", needs: hasClocks, do: clockJumps},
	{name: "the disk full", needs: hasDisk, do: diskFull},
	{name: "the state folder read-only", still: true, ends: true, needs: hasDisk, do: readOnly},
	{name: "the disk breaks, read-only under open files", ends: true, needs: func(s *trial) bool { return s.disk != nil && s.disk.image != "" }, do: diskBreaks},
}

func hasDisk(s *trial) bool { return s.disk != nil }
func hasClocks(*trial) bool { return *clocks }

// word says something to the admin API, which has to take it.
func (s *trial) word(path string) {
	if status := s.Post(path, "{}"); status != 200 {
		s.t.Errorf("%s: status %d", path, status)
	}
}

func (s *trial) rotate() { s.word("/api/pools/chat/rotate") }

// oneOf is one of the workers, once the supervisor tells of them: it may have no
// descriptor for who asks, or no time.
func (s *trial) oneOf() system.Worker {
	s.t.Helper()
	var list []system.Worker
	s.Until("the supervisor tells of its workers", func() bool {
		list = s.Workers()
		return len(list) == 2
	})
	return list[s.r.IntN(2)]
}

// signal sends a signal to one of the workers.
func (s *trial) signal(sig syscall.Signal) system.Worker {
	w := s.oneOf()
	if w.Place.PID > 0 && syscall.Kill(w.Place.PID, sig) == nil && sig != syscall.SIGSTOP {
		s.ended[w.ID] = w.Place.PID
	}
	return w
}

// killDoor takes the door away: what is under way there is lost with it, by its
// nature, and nothing else.
func killDoor(s *trial) {
	s.c.doors.Add(1)
	was := s.DoorPID()
	if was > 0 {
		syscall.Kill(was, syscall.SIGKILL)
	}
	s.Until("another door answers", func() bool { now := s.DoorPID(); return now > 0 && now != was && s.answers() })
	s.c.doors.Add(1)
}

// allDown ends every process at once, as a power cut does, and starts the program
// again after what is done meanwhile.
func (s *trial) allDown(meanwhile func()) {
	s.c.doors.Add(1)
	for _, w := range s.Workers() {
		s.ended[w.ID] = w.Place.PID
	}
	for list := s.own(); len(list) > 0; list = s.own() {
		for _, pid := range list {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		s.Kill() // and reap it
	}
	meanwhile()
	s.Up()
	s.Until("another door answers", s.answers)
	s.c.doors.Add(1)
}

// own are this system's processes: those whose program lies in its folder.
func (s *trial) own() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		s.t.Error(err)
	}
	dir := filepath.Dir(s.binary) + "/"
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if exe, err := os.Readlink("/proc/" + e.Name() + "/exe"); err == nil && strings.HasPrefix(exe, dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// freeze stops every process, as a hypervisor that moves the machine does, and lets
// them go on in any order. Their timers have all run out by then.
func (s *trial) freezeFor(a func()) {
	var frozen []int
	for more := true; more; {
		more = false
		for _, pid := range s.own() {
			if !slices.Contains(frozen, pid) && syscall.Kill(pid, syscall.SIGSTOP) == nil {
				frozen, more = append(frozen, pid), true
			}
		}
	}
	a()
	s.r.Shuffle(len(frozen), func(i, j int) { frozen[i], frozen[j] = frozen[j], frozen[i] })
	for _, pid := range frozen {
		syscall.Kill(pid, syscall.SIGCONT)
	}
}

// nap is how long a machine stands still: mostly for a moment; in long runs at times for
// longer than a lease holds, and than a silent worker is waited for.
func nap(r *rand.Rand) time.Duration {
	if *goOn > time.Minute && r.IntN(4) == 0 {
		return 10*time.Second + time.Duration(r.IntN(30000))*time.Millisecond
	}
	return time.Duration(r.IntN(3000)) * time.Millisecond
}

// withoutFiles lets a process open nothing for a moment; what is open stays so.
func (s *trial) withoutFiles(pid int) {
	var had unix.Rlimit
	none := func(cur uint64) *unix.Rlimit { return &unix.Rlimit{Cur: cur, Max: had.Max} }
	if pid <= 0 || unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &had) != nil || unix.Prlimit(pid, unix.RLIMIT_NOFILE, none(3), nil) != nil {
		return // it has ended with its rotation
	}
	<-time.After(time.Duration(s.r.IntN(3000)) * time.Millisecond)
	_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, none(had.Cur), nil) // as above
}

// files is how many descriptors each process may have.
const files = 400

// crowdDoor takes all descriptors that the door has left with connections that say
// nothing.
func crowdDoor(s *trial) {
	s.c.full.Store(true)
	var held []net.Conn
	for limit := patience.For(time.Minute); len(held) < files+100 && !limit.Over(); {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(s.Door, "http://"), time.Second)
		if err == nil {
			held = append(held, c)
		} else if len(held) >= files {
			break // the kernel's queue is full as well
		}
	}
	if len(held) < files {
		s.t.Errorf("only %d connections", len(held))
	}
	<-time.After(time.Second)
	for _, c := range held {
		c.Close()
	}
	s.Until("the door answers again", s.answers)
	s.c.full.Store(false)
}

// after is a program that runs another after a line of shell.
func after(t *testing.T, line, binary string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "roundhouse")
	if err := os.WriteFile(path, fmt.Appendf(nil, "#!/bin/sh\n%s\nexec '%s' \"$@\"\n", line, binary), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// answers reports whether the door answers.
func (s *trial) answers() bool {
	res, err := client.Get(s.Door + "/health")
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == 200
}
