package supervisor

import (
	"context"
	"log/slog"
	"time"

	"roundhouse/supervisor/journal"
)

// events are what happened: in the log at once, and in the journal and to those
// who listen at the end of a step.
type events struct {
	log      *slog.Logger
	notify   func(journal.Event) // nil: nobody
	recent   []journal.Event     // not yet written
	watchers map[chan journal.Event]bool
}

// note notes that something happened by the supervisor's own hand.
func (e *events) note(pool, worker, kind, text string) {
	e.noteBy("supervisor", pool, worker, kind, text)
}

// noteBy notes that something happened, and who wanted it.
func (e *events) noteBy(who, pool, worker, kind, text string) {
	e.recent = append(e.recent, journal.Event{At: time.Now().UTC(), Pool: pool, Worker: worker, Kind: kind, Who: who, Text: text})
	about := worker
	if about == "" {
		about = pool
	}
	level := slog.LevelInfo
	switch kind {
	case "crashed", "failed", "abandoned", "leaving", "quarantined", "rolled_back", "lost", "drain_forced", "driver", "finding":
		level = slog.LevelWarn
	}
	e.log.Log(context.Background(), level, kind, "worker", about, "why", text)
}

// flush writes what was noted, tells those who listen, and returns it. A full disk
// loses events, never service.
func (e *events) flush(memory *memory) []journal.Event {
	if len(e.recent) == 0 {
		return nil
	}
	if err := memory.journal.Append(e.recent); err != nil && memory.failed == nil {
		e.log.Error("events cannot be written", "error", err)
	}
	for _, x := range e.recent {
		for w := range e.watchers {
			select {
			case w <- x:
			default: // a listener that does not keep up misses some, and sees so by the numbers
			}
		}
		if e.notify != nil {
			e.notify(x)
		}
	}
	told := e.recent
	e.recent = nil
	return told
}
