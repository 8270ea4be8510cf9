// Package health diagnoses a service while it runs: it records what the metrics say,
// asks the rules of measure/diagnose every half minute, keeps their last report, and
// notes as events what began and what is over. It only advises.
package health

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"roundhouse/configs/workerid"
	"roundhouse/measure/anomaly"
	"roundhouse/measure/diagnose"
)

// The rhythm: samples, reports, and how far back the rules look.
const (
	every       = 5 * time.Second
	judgedEvery = 30 * time.Second
	longEvery   = time.Minute
	recentFor   = 5 * time.Minute
	longFor     = 7 * time.Hour
)

// Source is where a watch has its figures from.
type Source struct {
	Page  func(context.Context) (string, error) // an exposition of doors and workers
	Facts func(context.Context) diagnose.Facts
	// Note notes an event of a pool, and perhaps of one of its workers.
	Note func(ctx context.Context, pool, worker, kind, text string)
	Log  *slog.Logger
}

// Watch is the diagnosis of a running service.
type Watch struct {
	source Source

	mu           sync.Mutex
	recent, long diagnose.Recording
	detector     *anomaly.Detector
	processes    processes
	minuteAt     time.Time
	longAt       time.Time
	judgedAt     time.Time
	report       diagnose.Report
	open         map[string]diagnose.Finding // noted, and not over
}

// New makes a watch; Run lets it look.
func New(s Source) *Watch {
	return &Watch{source: s, report: diagnose.Judge(&diagnose.Recording{}, nil, &diagnose.Facts{}, &diagnose.Defaults), open: map[string]diagnose.Finding{},
		detector: anomaly.New(), processes: processes{}}
}

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			page, err := w.source.Page(ctx)
			if err != nil {
				w.source.Log.Debug("no metrics to diagnose by", "error", err.Error())
				continue
			}
			w.look(ctx, now.UTC(), page)
		}
	}
}

// look takes a sample, and judges if it is time.
func (w *Watch) look(ctx context.Context, now time.Time, page string) {
	w.mu.Lock()
	w.recent.Add(now, page)
	w.recent.Trim(recentFor)
	if now.Sub(w.longAt) >= longEvery {
		w.longAt = now
		w.long.Add(now, lasting(page))
		w.long.Trim(longFor)
	}
	if now.Sub(w.minuteAt) >= time.Minute {
		w.minuteAt = now
		w.detector.Add(minute(&w.recent, now, w.processes))
	}
	due := now.Sub(w.judgedAt) >= judgedEvery
	w.mu.Unlock()
	if !due {
		return
	}
	facts := w.source.Facts(ctx)
	w.mu.Lock()
	w.judgedAt = now
	w.report = diagnose.Judge(&w.recent, &w.long, &facts, &diagnose.Defaults, unusual(w.detector.Open())...)
	report := w.report
	w.mu.Unlock()
	w.tell(ctx, report)
}

// lasting is the part of an exposition that rules over hours need: no histograms.
func lasting(page string) string {
	var b strings.Builder
	for line := range strings.Lines(page) {
		if !strings.Contains(line, "_bucket{") && !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// tell notes what is new of a report and what is over. Notices without weight are in
// the report alone.
func (w *Watch) tell(ctx context.Context, r diagnose.Report) {
	now := map[string]diagnose.Finding{}
	for _, f := range r.Findings {
		if f.Severity.AtLeast(diagnose.Warn) {
			now[f.Rule+" "+f.Object] = f
		}
	}
	for key, f := range now {
		if _, known := w.open[key]; !known {
			w.note(ctx, f, "finding", f.Rule+": "+f.Says+"; do: "+f.Command)
		}
	}
	for key, f := range w.open {
		if _, still := now[key]; !still {
			w.note(ctx, f, "finding_over", f.Rule)
		}
	}
	w.open = now
}

func (w *Watch) note(ctx context.Context, f diagnose.Finding, kind, text string) {
	pool, name := workerid.Split(f.Object)
	worker := f.Object
	if name == "" {
		pool, worker = f.Object, ""
	}
	w.source.Note(ctx, pool, worker, kind, text)
}

// ServeHTTP answers with the last report.
func (w *Watch) ServeHTTP(rw http.ResponseWriter, _ *http.Request) {
	w.mu.Lock()
	data, err := json.Marshal(w.report)
	w.mu.Unlock()
	if err != nil {
		panic("BUG: " + err.Error())
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.Write(append(data, '\n')) // the asker may be gone
}
