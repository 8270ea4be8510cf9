package core

import (
	"fmt"
	"time"
)

// The verdicts on the end of a worker that was ready. A worker that had served comes
// back at once, whoever ended it. Those that end before they are of any use, and
// those that end alike again and again, are in a crash loop, and wait.
const (
	// served and lived are how long a worker must have been ready for its end to be
	// no early one: with requests answered, and without.
	served = 2 * time.Second
	lived  = 10 * time.Second
	// loopEnds ends alike, each within loopWindow of the one before, are a crash loop.
	loopEnds   = 4
	loopWindow = 10 * time.Minute
	// settled is how long a worker must have been ready for its next crash to
	// count as the first of a new row.
	settled = 10 * time.Minute
)

// crashed puts a worker that ended by itself in line for a restart: at once, or
// in a crash loop each time twice as late; a worker that had served waits no
// longer than it had lived.
func (s *step) crashed(id string, w *Worker, p *Pool, seen Seen, why string) {
	if w.Evidence != why || s.now.Sub(w.SameLast) > loopWindow {
		w.Same = 0
	}
	w.Same, w.SameLast, w.Evidence = w.Same+1, s.now, why
	life := s.now.Sub(w.Started)
	early := life < served || life < lived && seen.Tokens+seen.Served == 0
	// A request that ends a worker ends the next one too; a hand from outside,
	// whatever it wants, does not come with the request.
	loop := w.Same >= loopEnds && !seen.Killed
	wait, what := time.Duration(0), ""
	switch {
	case early:
		wait = backoff(w.Crashes)
		w.Crashes++
	case loop:
		wait = min(backoff(w.Crashes), life.Round(time.Second))
		w.Crashes++
		what = fmt.Sprintf(", %d times alike", w.Same)
	default:
		w.Crashes = 0
	}
	w.LastError, w.NextTry, w.Then, w.Deadline, w.Interrupted = why, s.now.Add(wait), "", time.Time{}, false
	s.to(w, Failed, "crashed: "+why)
	s.event(p.Name, id, "crashed", "generation %d: %s%s; next try in %v", w.Generation, why, what, wait)
}

// backoff is 0, 1, 2, 4 … seconds, at most five minutes.
func backoff(n int) time.Duration {
	if n <= 0 {
		return 0
	}
	return min(time.Second<<min(n-1, 9), 5*time.Minute)
}

// interrupted puts a worker that ended with its driver in line for a start. Neither
// it nor its settings have failed.
func (s *step) interrupted(id string, w *Worker, p *Pool, seen Seen) {
	why := seen.Exit
	if seen.Failure != "" {
		why, w.NextTry = seen.Failure, s.now.Add(time.Second)
	}
	if why == "" {
		why = "it is gone"
	}
	w.Interrupted, w.Then, w.Deadline = true, ThenStart, time.Time{}
	s.to(w, Stopped, "its driver was away, and it starts again")
	s.event(p.Name, id, "interrupted", "generation %d ended while its driver was away: %s; it starts again", w.Generation, why)
}

// back has the time limits of a start stand still for as long as its driver was
// away.
func (s *step) back(w *Worker) {
	if w.Away.IsZero() {
		return
	}
	if (w.Phase == Starting || w.Phase == Warming) && !w.Deadline.IsZero() {
		w.Deadline = w.Deadline.Add(s.now.Sub(w.Away))
	}
	w.Away = time.Time{}
}
