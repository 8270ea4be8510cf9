package campaign

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/test/system"
)

// rotated is how many rotations a run waits for, however long they take.
var rotated = flag.Int("rotations", 0, "go on until there were so many rotations, also after -for")

// trial is a system under rotations and faults.
type trial struct {
	*system.System
	t      *testing.T
	r      *rand.Rand
	c      checked
	binary string            // the program itself
	mounts bool              // file systems can be mounted, and the state folder is a small one of its own
	ended  map[string]int    // the process of each worker that was ended
	calls  map[string]int    // faults, by name
	turned map[uint64]string // rotations, and how they stood when they were last looked at
}

// smallDisk puts the state folder on a disk of its own.
func (s *trial) smallDisk(state string) {
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=64m"); err != nil {
		s.t.Logf("no small disk (%v): it will not be full, nor read-only", err)
		return
	}
	s.mounts = true
	s.t.Cleanup(func() {
		if err := unix.Unmount(state, unix.MNT_DETACH); err != nil {
			s.t.Error(err)
		}
	})
}

// list are the faults that this machine can have.
func (s *trial) list() []fault {
	list := append([]fault(nil), faults...)
	if s.mounts {
		list = append(list, diskFaults...)
	}
	if *clocks {
		list = append(list, fault{"the pool rotated, the clock jumps", clockJumps})
	}
	return list
}

// TestRotations lets one thing after the other go wrong under checked answers, and
// waits after each until both workers are ready. None of the answers is lost but
// those of a door that is killed.
func TestRotations(t *testing.T) {
	programs := &built
	if *clocks {
		programs = jumpingPrograms(t)
	}
	s := &trial{
		t: t, r: rand.New(rand.NewPCG(*seed, 3)), binary: programs.Path(t, "roundhouse"),
		calls: map[string]int{}, ended: map[string]int{}, turned: map[uint64]string{},
	}
	if err := jump(s.binary, 0); err != nil {
		t.Fatal(err)
	}
	s.System = start(t, fewFiles(t, s.binary), s.smallDisk)
	s.c.keep(t, s.System, 6)
	s.suffer(s.list())
	s.report("rotations")
}

// report fails the test if an answer was not whole, and notes what the part came to.
func (s *trial) report(part string) {
	s.t.Helper()
	s.c.stop(s.t)
	s.t.Logf("%d faults: %v; rotations: %v; %s", s.faults(), s.calls, s.ends(), s.c.String())
	results.add(tally{part: part, requests: s.c.whole.Load() + int64(s.c.bad()+s.c.excuse), faults: s.faults(), rotations: len(s.turned), c: &s.c, ended: "by faults", grown: "-"})
}

// suffer lets every fault come once, and then any, until it is time.
func (s *trial) suffer(list []fault) {
	n := 0
	for began := time.Now(); time.Since(began) < *goOn || n < len(list) || len(s.turned) < *rotated; n++ {
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
			s.t.Errorf("after %d faults, the last %q", n+1, f.name)
			return
		}
	}
}

func (s *trial) faults() (n int) {
	for _, times := range s.calls {
		n += times
	}
	return n
}

// ends counts the rotations by how they ended.
func (s *trial) ends() map[string]int {
	out := map[string]int{}
	for _, state := range s.turned {
		out[state]++
	}
	return out
}

// settled reports whether every worker is ready, those that were ended as another
// process, and nothing turns. A rotation that halted at a worker's death goes on.
func (s *trial) settled() bool {
	var shown struct {
		Rotations []struct {
			ID    uint64
			State string
		}
	}
	if !s.Get("/api/rotations", &shown) {
		return false
	}
	for _, r := range shown.Rotations {
		s.turned[r.ID] = r.State
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
