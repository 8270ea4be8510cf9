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

// growth is how much memory each process had from a third of the time on, when it has
// what it needs for good, and at the end.
type growth struct {
	parts  []string // "door 60 to 62"
	failed string   // which grew by half and 100 MiB
}

func (g growth) String() string { return strings.Join(g.parts, ", ") }

// watchMemory looks at the memory of the workers, the door and the supervisor until ctx
// ends.
func watchMemory(ctx context.Context, s *system.System) <-chan growth {
	said := make(chan growth, 1)
	go func() {
		deadline, _ := ctx.Deadline()
		settled := time.After(time.Until(deadline) / 3)
		select {
		case <-settled:
		case <-ctx.Done():
		}
		names, first := processes(s), map[int]int{}
		for _, p := range names {
			first[p.pid] = resident(p.pid)
		}
		<-ctx.Done()
		var g growth
		for _, p := range names {
			was, now := first[p.pid], resident(p.pid)
			g.parts = append(g.parts, fmt.Sprintf("%s %d to %d", p.name, was, now))
			if was > 0 && now > was+was/2+100 {
				g.failed = fmt.Sprintf("%s grew from %d to %d MiB", p.name, was, now)
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

func processes(s *system.System) []process {
	list := []process{{"supervisor", s.PID()}, {"door", s.DoorPID()}}
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
