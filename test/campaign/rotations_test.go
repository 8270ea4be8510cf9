package campaign

import (
	"errors"
	"fmt"
	"math/rand/v2"
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

// trial is a system under rotations and faults.
type trial struct {
	*system.System
	t     *testing.T
	r     *rand.Rand
	c     checked
	disk  bool           // the state folder is a disk of its own
	ended map[string]int // the process of each worker that was ended
	calls map[string]int
}

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
	{"the disk full", diskFull},
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

// answers reports whether the door answers.
func (s *trial) answers() bool {
	res, err := client.Get(s.Door + "/health")
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == 200
}

// smallDisk puts the state folder on a disk of its own.
func (s *trial) smallDisk(state string) {
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=64m"); err != nil {
		s.t.Logf("no small disk (%v): it will not be full", err)
		return
	}
	s.disk = true
	s.t.Cleanup(func() {
		if err := unix.Unmount(state, unix.MNT_DETACH); err != nil {
			s.t.Error(err)
		}
	})
}

// TestRotations lets one thing after the other go wrong under checked answers, and
// waits after each until both workers are ready. None of the answers is lost but
// those of a door that is killed.
func TestRotations(t *testing.T) {
	s := &trial{t: t, r: rand.New(rand.NewPCG(*seed, 3)), calls: map[string]int{}, ended: map[string]int{}}
	s.System = start(t, fewFiles(t, built.Path(t, "roundhouse")), s.smallDisk)
	s.c.keep(t, s.System, 6)
	list := faults
	if !s.disk {
		list = faults[:len(faults)-1]
	}
	n := 0
	for began := time.Now(); time.Since(began) < *goOn || n < len(list); n++ {
		f := list[s.r.IntN(len(list))]
		if n < len(list) {
			f = list[n]
		}
		s.calls[f.name]++
		since := s.c.whole.Load()
		f.do(s)
		s.Until(f.name+": all are ready and no rotation runs", s.settled)
		s.Until(f.name+": answers come", func() bool { return s.c.whole.Load() > since })
		if s.c.bad() > 0 {
			t.Errorf("after %d faults, the last %q", n+1, f.name)
			break
		}
	}
	s.c.stop(t)
	t.Logf("%d faults: %v; %s", n, s.calls, s.c.String())
}

// settled reports whether every worker is ready, those that were ended as another
// process, and nothing turns. A rotation that halted at a worker's death goes on.
func (s *trial) settled() bool {
	var shown struct {
		Rotations []struct{ State string }
	}
	if !s.Get("/api/rotations", &shown) {
		return false
	}
	for _, r := range shown.Rotations {
		if r.State == "halted" {
			s.Post("/api/pools/chat/rotate", `{"continue":true}`)
		}
		if r.State != "done" {
			return false
		}
	}
	for _, w := range s.Workers() {
		if w.Place.PID == s.ended[w.ID] {
			return false
		}
	}
	return s.AllReady()
}
