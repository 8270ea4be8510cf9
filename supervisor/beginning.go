package supervisor

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"roundhouse/balancer/control/phase"
	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/journal"
)

// flushEvents writes what was noted.
func (s *Supervisor) flushEvents() {
	for _, e := range s.events.flush(&s.memory) {
		s.firstFailure(e)
	}
}

// firstFailure ends a program that has just begun and whose worker cannot
// start: whoever typed the command still looks on.
func (s *Supervisor) firstFailure(e journal.Event) {
	if e.Kind != "failed" || e.Worker == "" || s.serving || !s.memory.fresh {
		return
	}
	w := s.memory.intent.Workers[e.Worker]
	s.stop(fmt.Errorf("worker %s does not start: %s\n%s", e.Worker, w.LastError, s.lastLines(e.Worker)))
}

// lastLines are the end of a worker's log, for people.
func (s *Supervisor) lastLines(id string) string {
	r := s.runnerOf(id)
	if r == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
	defer cancel()
	return tail(r.driver.Logs(ctx, id, driver.LogOptions{Tail: 12}))
}

// tail reads the end of a log.
func tail(r io.ReadCloser, err error) string {
	if err != nil {
		return ""
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, 16<<10))
	if err != nil || len(data) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return "the end of its log:\n  " + strings.Join(lines, "\n  ")
}

// announce says once that something can be served.
func (s *Supervisor) announce() {
	if s.serving {
		return
	}
	for _, d := range s.gate.doors {
		if d.state == nil || d.state.Phase != phase.Ready {
			continue
		}
		for _, w := range d.state.Workers {
			if w.State == phase.Ready && s.memory.intent.Workers[w.ID].Phase == core.Ready {
				s.serving = true
				close(s.first)
				return
			}
		}
	}
}
