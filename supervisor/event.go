package supervisor

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/journal"
)

// event notes that something happened: in the log at once, and in the journal
// and to those who listen at the end of the step.
func (s *Supervisor) event(pool, worker, kind, text string) {
	s.eventBy("supervisor", pool, worker, kind, text)
}

func (s *Supervisor) eventBy(who, pool, worker, kind, text string) {
	e := journal.Event{At: time.Now().UTC(), Pool: pool, Worker: worker, Kind: kind, Who: who, Text: text}
	s.recent = append(s.recent, e)
	about := worker
	if about == "" {
		about = pool
	}
	level := slog.LevelInfo
	switch kind {
	case "crashed", "failed", "abandoned", "leaving", "quarantined", "rolled_back", "lost", "drain_forced", "driver":
		level = slog.LevelWarn
	}
	s.log.Log(context.Background(), level, kind, "worker", about, "why", text)
}

// flushEvents writes what was noted. A full disk loses events, never service.
func (s *Supervisor) flushEvents() {
	if len(s.recent) == 0 {
		return
	}
	if err := s.journal.Append(s.recent); err != nil && s.diskFull == nil {
		s.log.Error("events cannot be written", "error", err)
	}
	for _, e := range s.recent {
		for w := range s.watchers {
			select {
			case w <- e:
			default: // a listener that does not keep up misses some, and sees so by the numbers
			}
		}
		if s.options.Notify != nil {
			s.options.Notify(e)
		}
		s.firstFailure(e)
	}
	s.recent = s.recent[:0]
}

// firstFailure ends a program that has just begun and whose worker cannot
// start: whoever typed the command still looks on.
func (s *Supervisor) firstFailure(e journal.Event) {
	if e.Kind != "failed" || e.Worker == "" || s.serving || !s.fresh {
		return
	}
	w := s.intent.Workers[e.Worker]
	s.stop(fmt.Errorf("worker %s does not start: %s\n%s", e.Worker, w.LastError, s.lastLines(e.Worker)))
}

// lastLines are the end of a worker's log, for people.
func (s *Supervisor) lastLines(id string) string {
	_, d := s.driverOf(id)
	if d == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
	defer cancel()
	return s.tail(d.Logs(ctx, id, driver.LogOptions{Tail: 12}))
}

// tail reads the end of a log.
func (s *Supervisor) tail(r io.ReadCloser, err error) string {
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

// counters count what the metrics tell.
type counters struct {
	starts    map[[3]string]float64 // pool, worker, reason
	rotations map[[2]string]float64 // pool, result
	success   map[string]time.Time  // of the last rotation that got through
	seconds   *prometheus.HistogramVec
}

func newCounters() counters {
	return counters{starts: map[[3]string]float64{}, rotations: map[[2]string]float64{}, success: map[string]time.Time{},
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "roundhouse_turn_seconds", Help: "How long the parts of a worker's turn take.", Buckets: prometheus.ExponentialBuckets(0.25, 2, 13),
		}, []string{"pool", "phase"}),
	}
}

// count takes one decision's event into the counters.
func (c *counters) count(e core.Event) {
	switch e.Kind {
	case "started":
		reason := "start"
		for _, word := range []string{"rotation", "crashed", "roll-back", "hung", "does not answer", "started by"} {
			if strings.Contains(e.Text, word) {
				reason = strings.ReplaceAll(word, " ", "_")
				break
			}
		}
		_, name, _ := strings.Cut(e.Worker, "/")
		c.starts[[3]string{e.Pool, name, reason}]++
	case "missed":
		c.rotations[[2]string{e.Pool, "missed"}]++
	case "rotation":
		for _, result := range []core.RotationState{core.Done, core.RolledBack, core.Halted} {
			if strings.Contains(e.Text, " is "+string(result)+":") {
				c.rotations[[2]string{e.Pool, string(result)}]++
				if result == core.Done {
					c.success[e.Pool] = time.Now()
				}
			}
		}
	}
}
