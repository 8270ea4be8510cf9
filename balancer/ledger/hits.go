package ledger

// Believed returns how much of the prompt the prefix table believed to lie in
// the worker's cache when the charge was picked.
func (c *Charge) Believed() int64 { return c.believed }

// Uncomputed sums the prompts of a worker's requests whose first token is not
// there yet.
func (l *Ledger) Uncomputed(w *Worker) (tokens int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := w.charges; c != nil; c = c.next {
		if c.booked() && !c.first {
			tokens += c.prompt
		}
	}
	return tokens
}

// mostCounted is how many answers one look at the counters stands for at most.
const mostCounted = 16

// Counted enters what a worker's own counters say of its cache. Where they hold other
// traffic as well, fewer of the hits may have been ours: then they can show that too much
// was believed, and nothing else.
func (l *Ledger) Counted(w *Worker, generation uint64, m Measured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation != w.generation || m.Requests <= 0 || m.AtMost && m.Cached >= w.cached(m.Believed) {
		return
	}
	for range min(m.Requests, mostCounted) {
		w.learnCredit(m.Believed/m.Requests, max(m.Cached, 0)/m.Requests)
	}
	w.post()
}
