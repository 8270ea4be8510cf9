package ledger

// crowding is how often a door's requests come at once, and how long their
// prompts are. What comes at once comes to other doors as well, and before they
// can tell each other of it: each would choose the same worker.
type crowding struct {
	last  int64
	share float64 // of the requests, those that came at once with the one before
	work  average // of a prompt
	gap   float64 // seconds between two, on average
}

// atOnce is how close to each other two requests come at once: doors tell each
// other of a choice within that time.
const atOnce = 5e6

// longestGap bounds, in seconds, how much of a pause counts: what comes after it is as
// dense as what came before.
const longestGap = 10

// booked notes that a request was placed.
func (c *crowding) booked(now, work int64) {
	together := 0.0
	if now-c.last < atOnce {
		together = 1
	}
	if c.last > 0 {
		gap := max(0, min(float64(now-c.last)/1e9, longestGap))
		c.gap += (gap - c.gap) / float64(min(c.work.n, 64))
	}
	c.last = now
	c.share += (together - c.share) / 32
	c.work.add(float64(work))
}

// unheard is the work that another door is about to send to a worker that it
// takes first, as far as the requests of this one show.
func (c *crowding) unheard() float64 { return c.share * c.work.v }

// rate is how many requests a second come to each of n workers that do so much work a
// second, as the last 64 or so came. No more of a burst counts than they can do.
func (c *crowding) rate(n int, work float64) float64 {
	if c.gap <= 0 {
		return 0
	}
	return min(1/c.gap/float64(max(1, n)), work/max(1, c.work.v))
}

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
