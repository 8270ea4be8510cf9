package ledger

import "math/bits"

// classes of prompts by length, two an octave, from 32 tokens on.
const classes = 24

// classOf is the class of a prompt.
func classOf(tokens int64) int {
	tokens = max(tokens, 32)
	n := bits.Len64(uint64(tokens))
	return min(2*(n-6)+int(tokens>>(n-2)&1), classes-1)
}

// backlog is what a worker has to compute before first tokens: the work of its
// prompts and how many they are, summed up to each class of length.
type backlog [classes]struct{ work, n int64 }

// queue enters a prompt's work at the worker, or takes it out again.
func (w *Worker) queue(class int, work, n int64) {
	w.work += work
	w.prompts += n
	for i := class; i < classes; i++ {
		w.backlog[i].work += work
		w.backlog[i].n += n
		w.postQueue(i)
	}
}

// mix is which share of the recent work was in prompts of each class.
type mix [classes]float64

func (m *mix) add(class int, work float64) {
	for i := range m {
		m[i] *= 1 - 1.0/256
	}
	m[class] += work
}

// before is the work that is sure to be done at a worker before that of a
// prompt of a class.
func (w *Worker) before(class int) int64 {
	switch {
	case !w.report.HasPrefill:
		return w.work
	case class == 0:
		return 0
	}
	return w.backlog[class-1].work
}

// Rank says when a request goes among those that wait for room, the least
// first: the shorter before the longer, less what each has waited, so that no
// stream of short prompts holds a long one off for good. A worker of ours weighs
// those that wait there alike: what is computed meanwhile counts a sixteenth.
// Before engines that compute prompts as they come it counts a half: a prompt is
// overtaken only by what comes within twice the time that it takes itself.
func (l *Ledger) Rank(g *Group, prompt, now int64) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The clock only goes on, at whatever rate is believed meanwhile.
	if now > g.agedAt {
		part := 2.0
		if len(g.rows) > 0 && g.rows[0].shortest {
			part = 16
		}
		g.aged += float64(now-g.agedAt) / 1e9 * g.meanRate() / part
		g.agedAt = now
	}
	return float64(prompt) + g.aged
}

// curve is how the work of a prompt grows with its length. The unit of work is
// what one token takes at the beginning of a prompt; every token before it adds
// bend to that, since attention looks at all of them. It is learned from the
// times of prompts that found their worker idle.
type curve struct {
	bend float64
	lows [classes]low
	n    int
}

// low is the seconds that a token takes in prompts of one class, near the least
// that was seen: whatever else the worker did meanwhile only adds to it.
type low struct {
	tokens, seconds float64
	n               int
}

// work is what a prompt takes whose first tokens are cached.
func (c *curve) work(tokens, cached int64) int64 {
	n, h := float64(tokens), float64(cached)
	w := n - h
	if c != nil {
		w += c.bend / 2 * (n*n - h*h)
	}
	return int64(w)
}

// mostBend bounds what is learned: the second half of such a prompt of 128
// tokens would take twice as long as the first.
const mostBend = 1.0 / 64

// learn takes one prompt that was computed alone.
func (c *curve) learn(tokens int64, seconds float64) {
	if tokens < 128 || seconds <= 0 {
		return
	}
	l := &c.lows[classOf(tokens)]
	per, step := seconds/float64(tokens), 0.03
	switch {
	case l.n == 0:
		step = 1
	case per < l.seconds:
		step = 0.3
	}
	l.n = min(l.n+1, 64)
	l.seconds += (per - l.seconds) * step
	l.tokens += (float64(tokens) - l.tokens) * max(step, 0.1)
	if c.n++; c.n%8 == 0 {
		c.fit()
	}
}

// fit draws the line of seconds a token over tokens that comes nearest to what
// was seen, by the squares of the relative errors.
func (c *curve) fit() {
	var s, x, xx, y, xy float64
	for i := range c.lows {
		l := &c.lows[i]
		if l.n == 0 {
			continue
		}
		weight := float64(min(l.n, 8)) / (l.seconds * l.seconds)
		half := l.tokens / 2
		s += weight
		x += weight * half
		xx += weight * half * half
		y += weight * l.seconds
		xy += weight * half * l.seconds
	}
	det := s*xx - x*x
	if det <= 1e-9*s*xx {
		return // all of one length
	}
	slope, base := (s*xy-x*y)/det, (xx*y-x*xy)/det
	if slope <= 0 {
		c.bend = 0
		return
	}
	c.bend = mostBend
	if base*mostBend > slope {
		c.bend = slope / base
	}
}
