package fleet

import "roundhouse/balancer/control/phase"

// NotTaken reports whether a worker's 503 says no more than that it is about to end: it
// has not taken the request up, which is then not refused but still to be served, by
// another worker or by its own successor. A worker of ours gives no other 503; of any
// other kind one is ending if the supervisor has said so.
func (f *Fleet) NotTaken(w *Worker) bool {
	if w.Own.Load() {
		w.setEnding(f, true)
		return true
	}
	return w.Config().State != phase.Ready
}

// setEnding notes whether the worker's process is about to end. What it reports holds
// until it reports another thing, or another process does.
func (w *Worker) setEnding(f *Fleet, ending bool) {
	w.mu.Lock()
	changed := w.ending != ending
	w.ending = ending
	if changed {
		w.update(f)
	}
	w.mu.Unlock()
	if changed && !ending {
		w.Pool.Pump(f)
	}
}
