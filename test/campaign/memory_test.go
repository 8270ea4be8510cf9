package campaign

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"roundhouse/test/system"
)

// growth is how much memory and how many open files each process had from a third of the
// time on, when it has what it needs for good, and at the end.
type growth struct {
	parts  []string // "door 60 to 62"
	failed string   // which grew by half and 100 MiB, or 100 files
}

func (g growth) String() string { return strings.Join(g.parts, ", ") }

// watchMemory looks at the memory of the processes that there are after a third of the
// time, until ctx ends.
func watchMemory(ctx context.Context, list func() []process) <-chan growth {
	said := make(chan growth, 1)
	go func() {
		deadline, _ := ctx.Deadline()
		settled := time.After(time.Until(deadline) / 3)
		select {
		case <-settled:
		case <-ctx.Done():
		}
		names, first, opened := list(), map[int]int{}, map[int]int{}
		for _, p := range names {
			first[p.pid], opened[p.pid] = resident(p.pid), openFiles(p.pid)
		}
		<-ctx.Done()
		var g growth
		for _, p := range names {
			was, now := first[p.pid], resident(p.pid)
			files := openFiles(p.pid)
			g.parts = append(g.parts, fmt.Sprintf("%s %d to %d (%d to %d files)", p.name, was, now, opened[p.pid], files))
			if was > 0 && now > was+was/2+100 || files > opened[p.pid]+100 {
				g.failed = fmt.Sprintf("%s grew from %d to %d MiB, from %d to %d files", p.name, was, now, opened[p.pid], files)
			}
		}
		said <- g
	}()
	return said
}

type process struct {
	name string
	pid  int
}

// keepers are the processes of a system that outlive its workers.
func keepers(s *system.System) []process {
	return []process{{"supervisor", s.PID()}, {"door", s.DoorPID()}}
}

func processes(s *system.System) []process {
	list := keepers(s)
	for _, w := range s.Workers() {
		list = append(list, process{w.ID, w.Place.PID})
	}
	return list
}

// resident is the memory of a process in MiB; 0 if it is gone.
func resident(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	field, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	kib, err := strconv.Atoi(field)
	if err != nil {
		return 0
	}
	return kib >> 10
}

// openFiles is how many descriptors a process has open.
func openFiles(pid int) int {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0
	}
	return len(list)
}
