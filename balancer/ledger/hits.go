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

// Counted enters what a worker's own counters say of its cache: of so many
// tokens that the prefix table believed there, for so many requests, so many
// were. Where the counters
// hold other traffic as well, atMost says that fewer may have been ours: then
// they can show that too much was believed, and nothing else.
func (l *Ledger) Counted(w *Worker, generation uint64, believed, cached, requests int64, atMost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation != w.generation || requests <= 0 || atMost && cached >= w.cached(believed) {
		return
	}
	for range min(requests, mostCounted) {
		w.learnCredit(believed/requests, max(cached, 0)/requests)
	}
	w.post()
}
