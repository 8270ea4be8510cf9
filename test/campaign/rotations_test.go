package campaign

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/test/system"
)

var (
	rotated = flag.Int64("rotations", 0, "go on until there were so many rotations, of processes and containers together, also after -for")
	fleets  = flag.Int("fleets", 2, "how many systems of processes turn side by side")
)

// trial is a system under rotations and faults.
type trial struct {
	*system.System
	t      *testing.T
	r      *rand.Rand
	c      checked
	part   string
	binary string            // the program itself, in a folder that is this system's alone
	faults []fault           // those that it can have
	disk   *disk             // what its state folder lies on, if that is a disk of its own
	ahead  time.Duration     // of its clock
	ended  map[string]int    // the process of each worker that was ended
	turned map[uint64]string // rotations, and how they stood when they were last looked at
}

func newTrial(t *testing.T, part, binary string, number uint64) *trial {
	return &trial{
		t: t, r: rand.New(rand.NewPCG(*seed, number)), part: part, binary: ownFolder(t, binary),
		ended: map[string]int{}, turned: map[uint64]string{},
	}
}

// ownFolder links the programs into a folder that no other system runs: there its
// processes are known by, and there its clocks are set.
func ownFolder(t *testing.T, binary string) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(binary), "fleet-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the door runs as another user
		t.Fatal(err)
	}
	for _, name := range []string{"roundhouse", "roundhouse-worker"} {
		if err := os.Link(filepath.Join(filepath.Dir(binary), name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "roundhouse")
}

// TestRotations rotates pools of processes and lets one thing after the other go wrong
// meanwhile, under checked answers; after each it waits until both workers are ready.
// None of the answers is lost but those of a door that is killed. A rotation waits for
// processes more than it computes, so several systems turn side by side.
func TestRotations(t *testing.T) {
	t.Parallel() // beside the containers
	programs := &built
	if *clocks {
		programs = jumpingPrograms(t)
	}
	binary := programs.Path(t, "roundhouse")
	t.Logf("seed %d", *seed)
	course := newCourse()
	t.Run("fleet", func(t *testing.T) {
		for i := range max(1, *fleets) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				s := newTrial(t, fmt.Sprintf("rotations %d", i), binary, uint64(3+i))
				s.setClock(0)
				s.place(i)
				s.System = system.Start(t, after(t, fmt.Sprint("ulimit -n ", files), s.binary), patient, twoWorkers, s.onDisk)
				s.run(course, 3)
			})
		}
	})
	course.report(t)
}

// place gives the i-th system its disk and its faults. The first one's supervisor and
// door live to the end, so that their memory can be watched; the second one's disk can
// break.
func (s *trial) place(i int) {
	s.disk = newDisk(s.t, i == 1)
	for _, f := range faults {
		if (i > 0 || !f.ends) && (f.needs == nil || f.needs(s)) {
			s.faults = append(s.faults, f)
		}
	}
}

// onDisk puts the state folder on a disk of its own.
func (s *trial) onDisk(state string) {
	if s.disk != nil {
		s.disk.mount(state)
	}
}

// run goes through faults under n checked streams, and notes what the part came to.
func (s *trial) run(course *course, n int) {
	s.t.Helper()
	s.c.pause = 500 * time.Millisecond
	s.c.keep(s.t, s.System, n)
	row := tally{part: s.part, c: &s.c, ended: "by faults", grown: "-"}
	ctx, cancel := context.WithTimeout(s.t.Context(), *goOn)
	defer cancel()
	var grown <-chan growth
	if s.keeps() {
		grown = watchMemory(ctx, func() []process { return keepers(s.System) })
	}
	struck := s.suffer(course)
	s.c.stop(s.t)
	if grown != nil {
		cancel()
		memory := <-grown
		if memory.failed != "" {
			s.t.Error(memory.failed)
		}
		row.grown = memory.String()
	}
	row.requests, row.faults, row.rotations = s.c.whole.Load()+int64(s.c.bad()+s.c.excuse), struck, len(s.turned)
	results.add(row)
	s.t.Logf("%d faults, rotations: %v; %s", struck, s.ends(), s.c.String())
}

// suffer lets faults come until it is time, and returns how many came.
func (s *trial) suffer(course *course) (n int) {
	for began := time.Now(); ; n++ {
		f, ok := course.next(s, time.Since(began) >= *goOn)
		if !ok {
			return n
		}
		since, turns, at := s.c.whole.Load(), len(s.turned), time.Now()
		if !f.still {
			s.rotate()
			<-time.After(time.Duration(s.r.IntN(1500)) * time.Millisecond) // any moment of the rotation
		}
		f.do(s)
		s.Until(f.name+": all are ready and no rotation runs", s.settled)
		s.Until(f.name+": answers come", func() bool { return s.c.whole.Load() > since })
		course.came(f.name, len(s.turned)-turns, s.c.whole.Load()-since, time.Since(at))
		if s.c.bad() > 0 {
			s.t.Errorf("after %d faults, the last %q", n+1, f.name)
			return n + 1
		}
	}
}

// keeps reports whether no fault of the system ends its supervisor or its door.
func (s *trial) keeps() bool {
	return !slices.ContainsFunc(s.faults, func(f fault) bool { return f.ends })
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

// course is what the systems of a run share: the faults that have not come yet, and what
// those came to that did.
type course struct {
	mu      sync.Mutex
	turns   int
	names   []string // in the order in which they first came
	strikes map[string]*strikes
}

type strikes struct {
	faults, rotations int
	whole             int64
	took              time.Duration
}

// allTurns are the rotations of all courses.
var allTurns atomic.Int64

func newCourse() *course { return &course{strikes: map[string]*strikes{}} }

// next is the fault that comes to a system next: one that nobody has had, or any. There
// is none once it is late, each came, and there were rotations enough.
func (c *course) next(s *trial, late bool) (fault, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := s.faults[s.r.IntN(len(s.faults))]
	for _, owed := range s.faults {
		if c.strikes[owed.name] == nil {
			f, late = owed, false
			break
		}
	}
	if late && allTurns.Load() >= *rotated {
		return f, false
	}
	if c.strikes[f.name] == nil {
		c.names, c.strikes[f.name] = append(c.names, f.name), &strikes{}
	}
	c.strikes[f.name].faults++
	return f, true
}

// came notes what a fault came to.
func (c *course) came(name string, rotations int, whole int64, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.strikes[name]
	n.rotations, n.whole, n.took = n.rotations+rotations, n.whole+whole, n.took+took
	c.turns += rotations
	allTurns.Add(int64(rotations))
}

// report tells what each kind of fault came to.
func (c *course) report(t *testing.T) {
	t.Helper()
	var text strings.Builder
	for _, name := range c.names {
		n := c.strikes[name]
		fmt.Fprintf(&text, "\n%4d times, %4d rotations, %6d answers whole, %8v each: %s", n.faults, n.rotations, n.whole, (n.took / time.Duration(n.faults)).Round(time.Millisecond), name)
	}
	t.Logf("%d rotations%s", c.turns, text.String())
}
