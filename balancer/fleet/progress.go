package fleet

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"roundhouse/balancer/ledger"
)

// hungAfter is how long a worker may compute nothing while it says that it
// runs requests, and nothing is known for which it would keep silent.
const hungAfter = 30 * time.Second

// Slower is how many times longer than predicted prompts may take: pictures, other
// languages and an engine's other clients are in no prediction.
const Slower = 4

// pulse is what changes while an engine computes, whichever of it its kind shows:
// vLLM counts a prompt's tokens when all of it is computed, and meanwhile books its
// blocks part by part.
type pulse struct {
	progress, used, generated int64
	running, waiting          int
}

// silence is since when a worker shows no sign of computing. It belongs to the
// goroutine that keeps house.
type silence struct {
	last  pulse
	since int64
	told  bool        // of a suspicion, in the log
	asked atomic.Bool // its health is being asked for
	sick  atomic.Bool // and was bad, when it was asked last
}

// look takes the pulse, and returns how long it has been still.
func (s *silence) look(v *ledger.Account, now int64) time.Duration {
	p := pulse{v.Progress, v.Reported, v.Generated, v.Running, v.Waiting}
	if p != s.last || v.InFlight == 0 || v.Running == 0 || s.since == 0 {
		s.last, s.since, s.told = p, now, false
		s.sick.Store(false)
	}
	return time.Duration(now - max(s.since, v.ProgressAt, v.OldestSent))
}

// patience is how long a silence of a worker may last: until it is suspected, and
// until that is enough to take it out, whatever else it shows.
//
// Ours counts each step, so that its silence tells. Others are silent from the
// beginning of a prompt to its end, and those among them that compute a prompt in
// one step let no other stream go on meanwhile. So as long as there is a prompt to
// be computed, silence shows nothing: what was learned of the worker's rate says
// from when on it is a suspicion, for which a bad health is the second sign; without
// that it goes on as long as an answer may take to begin, and as long as predicted.
func (f *Fleet) patience(v *ledger.Account, own bool, firstByte time.Duration) (suspect, hung time.Duration) {
	predicted := time.Duration(Slower * v.PrefillSeconds * 1e9)
	switch {
	case own:
		hung = max(f.HungAfter, predicted)
		return hung, hung
	case v.PromptsLeft == 0 && v.Waiting <= 0 && v.Running <= v.InFlight+v.Elsewhere.InFlight:
		return f.HungAfter, f.HungAfter
	case !v.RateLearned:
		return max(firstByte, predicted), max(firstByte, predicted)
	}
	return max(f.HungAfter, predicted), max(f.HungAfter, firstByte, predicted)
}

// watchProgress finds a worker that accepts and answers its health check while
// no token comes.
func (f *Fleet) watchProgress(w *Worker) {
	now := f.now()
	v := f.ledger.Account(w.Acct, now)
	silent := w.silence.look(&v, now)
	if v.InFlight == 0 || v.Running <= 0 || v.ReportAge < 0 || v.ReportAge > int64(5*time.Second) || v.OldestSent == 0 {
		return
	}
	suspect, hung := f.patience(&v, w.Own.Load(), time.Duration(f.FirstByte.Load()))
	if silent < suspect {
		return
	}
	if silent < hung && !w.silence.sick.Load() {
		f.askHealth(w)
		return
	}
	f.log.Warn("a worker makes no progress; its requests go on elsewhere", "worker", w.ID, "silent_seconds", int64(silent/time.Second))
	f.ledger.Eject(w.Acct, "no_progress", now)
	f.MoveAway(w, true)
}

// healthWithin bounds one look at a worker's health.
const healthWithin = 5 * time.Second

// askHealth asks a silent worker for its health, beside everything else.
func (f *Fleet) askHealth(w *Worker) {
	if !w.silence.told {
		w.silence.told = true
		f.log.Info("a worker computes a prompt for longer than predicted; its health decides", "worker", w.ID)
	}
	if !w.silence.asked.CompareAndSwap(false, true) {
		return
	}
	f.wg.Go(func() {
		defer w.silence.asked.Store(false)
		ctx, cancel := context.WithTimeout(f.ctx, healthWithin)
		defer cancel()
		resp, err := w.send(ctx, f, "/health")
		if err == nil {
			resp.Body.Close()
		}
		var failed *url.Error
		w.silence.sick.Store(errors.As(err, &failed) && f.ctx.Err() == nil || err == nil && resp.StatusCode >= http.StatusInternalServerError)
	})
}
