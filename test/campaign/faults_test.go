package campaign

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/test/system"
)

// fault is one thing that goes wrong, until all is well again.
type fault struct {
	name string
	do   func(*trial)
}

var faults = []fault{
	{"a worker killed", func(s *trial) { s.signal(syscall.SIGKILL) }},
	{"a worker terminated", func(s *trial) { s.signal(syscall.SIGTERM) }},
	{"a worker stopped for a while", func(s *trial) {
		w := s.signal(syscall.SIGSTOP)
		<-time.After(time.Duration(s.r.IntN(3000)) * time.Millisecond)
		syscall.Kill(w.Place.PID, syscall.SIGCONT) // it may have been ended for its silence
	}},
	{"the pool rotated", func(s *trial) { s.rotate() }},
	{"the pool rotated, a worker killed", func(s *trial) { s.rotate(); s.signal(syscall.SIGKILL) }},
	{"the pool rotated, the supervisor killed", func(s *trial) { s.rotate(); s.Kill(); s.Up() }},
	{"a worker drained", func(s *trial) {
		w := s.Workers()[s.r.IntN(2)]
		s.word("/api/workers/" + w.ID + "/drain")
		<-time.After(time.Duration(s.r.IntN(2000)) * time.Millisecond)
		s.word("/api/workers/" + w.ID + "/undrain")
	}},
	{"the supervisor killed", func(s *trial) { s.Kill(); s.Up() }},
	{"the door killed", killDoor},
	{"no descriptors", noDescriptors},
}

// diskFaults are those that need a state folder on a file system of its own.
var diskFaults = []fault{
	{"the disk full", diskFull},
	{"the state folder read-only", readOnly},
}

// word says something to the admin API, which has to take it.
func (s *trial) word(path string) {
	if status := s.Post(path, "{}"); status != 200 {
		s.t.Errorf("%s: status %d", path, status)
	}
}

func (s *trial) rotate() { s.word("/api/pools/chat/rotate") }

// signal sends a signal to one of the workers.
func (s *trial) signal(sig syscall.Signal) system.Worker {
	w := s.Workers()[s.r.IntN(2)]
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

// files is how many descriptors each process may have.
const files = 400

// noDescriptors takes all that the door has left with connections that say nothing.
func noDescriptors(s *trial) {
	s.c.full.Store(true)
	var held []net.Conn
	for range files + 100 {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(s.Door, "http://"), time.Second)
		if err != nil {
			break // the kernel's queue is full as well
		}
		held = append(held, c)
	}
	if len(held) < files {
		s.t.Errorf("only %d connections", len(held))
	}
	s.rotate() // workers turn meanwhile
	<-time.After(2 * time.Second)
	for _, c := range held {
		c.Close()
	}
	s.Until("the door answers again", s.answers)
	s.c.full.Store(false)
}

// fewFiles is a program that runs another with few descriptors.
func fewFiles(t *testing.T, binary string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "roundhouse")
	text := fmt.Sprintf("#!/bin/sh\nulimit -n %d\nexec '%s' \"$@\"\n", files, binary)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// diskFull fills the disk that the state folder is on, and kills a worker meanwhile.
func diskFull(s *trial) {
	filler := filepath.Join(s.State, "filler")
	f, err := os.Create(filler)
	if err != nil {
		s.t.Errorf("filling the disk: %v", err)
		return
	}
	for page := make([]byte, 4096); err == nil; {
		_, err = f.Write(page)
	}
	if !errors.Is(err, unix.ENOSPC) {
		s.t.Errorf("filling the disk: %v", err)
	}
	f.Close()
	s.signal(syscall.SIGKILL)
	<-time.After(2 * time.Second)
	if err := os.Remove(filler); err != nil {
		s.t.Error(err)
	}
}

// readOnly covers the state folder with a view of itself that takes no writes, as after
// a remount; descriptors that are open go on. A worker is killed meanwhile, and the
// supervisor: its successor has to refuse the folder, while the door and the workers
// that there are serve.
func readOnly(s *trial) {
	err := unix.Mount(s.State, s.State, "", unix.MS_BIND, "")
	if err == nil {
		err = unix.Mount("", s.State, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	}
	if err != nil {
		s.t.Errorf("a state folder that is read-only: %v", err)
		return
	}
	s.signal(syscall.SIGKILL)
	<-time.After(2 * time.Second)
	s.Kill()
	if said, err := s.Attempt(); err == nil || !strings.Contains(said, s.State) {
		s.t.Errorf("up on a state folder that is read-only: %v; it said %s", err, said)
	}
	since := s.c.whole.Load()
	s.Until("answers come without a supervisor", func() bool { return s.c.whole.Load() > since })
	if err := unix.Unmount(s.State, unix.MNT_DETACH); err != nil {
		s.t.Error(err)
	}
	s.Up()
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
