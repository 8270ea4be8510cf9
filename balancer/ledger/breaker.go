package ledger

import "slices"

// breaker takes a worker out after failures in a row, for a while; after that
// one request at a time probes it.
type breaker struct {
	failures int
	opens    int   // in a row, without a success between
	until    int64 // open until then
	probing  bool
	busy     int64  // answered 429 or 503: not asked again until then
	reason   string // why it is open, as explanations say it
}

// Breaker configures when workers are taken out.
type Breaker struct {
	Failures int   // in a row; 0: never
	Open     int64 // nanoseconds; doubles up to 8 times
}

// judge enters how a request ended.
func (w *Worker) judge(l *Ledger, how Outcome, now int64) {
	b := &w.breaker
	switch how {
	case Served:
		w.served++
		*b = breaker{}
	case Failed, Erred:
		w.failed++
		b.failures++
		if l.breaker.Failures > 0 && (b.failures >= l.breaker.Failures || b.probing) && (how == Failed || w.spared(now)) {
			w.eject(l, "failures", now)
		}
		b.probing = false
	case Busy:
		b.busy = now + 250e6
		b.probing = false
	case Neutral:
		b.probing = false
	}
}

// spared reports whether another worker of the group may be used: the last one is
// never taken out for answers that it gave, for whatever it answers is better than
// nothing.
func (w *Worker) spared(now int64) bool {
	return w.group != nil && slices.ContainsFunc(w.group.workers, func(o *Worker) bool {
		return o != w && o.ready && o.breaker.until <= now && !o.breaker.probing
	})
}

// Blame enters that a worker answered a request with an error, which another worker
// then served.
func (l *Ledger) Blame(t Try, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Worker.generation == t.Generation {
		t.Worker.judge(l, Erred, now)
	}
}

func (w *Worker) eject(l *Ledger, reason string, now int64) {
	b := &w.breaker
	b.until = now + l.breaker.Open<<min(b.opens, 3)
	b.opens++
	b.probing = false
	b.reason = "ejected: " + reason
	w.post()
	if l.OnEject != nil {
		l.OnEject(w, reason)
	}
}

// Eject takes a worker out for a while, for a reason other than failed
// requests: a dead connection, no progress.
func (l *Ledger) Eject(w *Worker, reason string, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.breaker.until <= now {
		w.eject(l, reason, now)
	}
}

// Recover says that a worker has answered: one that was taken out is let in
// again as a probe at once.
func (l *Ledger) Recover(w *Worker, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.breaker.until > now {
		w.breaker.until = now
		w.post()
	}
}

// open reports why the breaker keeps a worker out, "" when it does not.
func (b *breaker) open(now int64) string {
	switch {
	case b.until > now:
		return b.reason
	case b.opens > 0 && b.probing:
		return "ejected: one probe is under way"
	case b.busy > now:
		return "busy"
	}
	return ""
}
