package ledger

// crowding is how often a door's requests come at once, and how long their
// prompts are. What comes at once comes to other doors as well, and before they
// can tell each other of it: each would choose the same worker.
type crowding struct {
	last  int64
	share float64 // of the requests, those that came at once with the one before
	work  average // of a prompt
}

// atOnce is how close to each other two requests come at once: doors tell each
// other of a choice within that time.
const atOnce = 5e6

// booked notes that a request was placed.
func (c *crowding) booked(now, work int64) {
	together := 0.0
	if now-c.last < atOnce {
		together = 1
	}
	c.last = now
	c.share += (together - c.share) / 32
	c.work.add(float64(work))
}

// unheard is the work that another door is about to send to a worker that it
// takes first, as far as the requests of this one show.
func (c *crowding) unheard() float64 { return c.share * c.work.v }

// Share says which of a group's workers another door takes first when requests
// come to all doors at once. For the others this door is the first.
func (l *Ledger) Share(g *Group, theirs func(id string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range g.workers {
		w.theirs = theirs(w.ID)
		w.post()
	}
}
