package ledger

import "sync/atomic"

// Charge is what one request has booked at one worker. The zero value is
// ready for Pick; after Release it may be used again.
type Charge struct {
	worker     *Worker
	generation uint64
	live       bool
	first      bool // its first token is there
	prompt     int64
	expect     int64
	hit        int64 // of the prompt, believed cached when it was sent
	kv         int64 // booked, beside what is covered
	covered    int64 // of its prompt, booked in segments that others may share
	chunks     []uint64
	believed   int64 // of the prompt, in the worker's cache by the prefix table alone
	prefill    int64 // booked
	class      int   // of its prompt's length
	work       int64 // of its prefill, in the worker's backlog
	pending    int64 // work before it at the worker when it was sent
	alone      bool  // it found nothing to be computed there
	sent       int64 // when
	predicted  float64

	Seq       uint64
	generated atomic.Int64

	prev, next *Charge // the worker's live charges
}

// Worker returns the worker that the charge is booked at, nil before Pick and
// after Release.
func (c *Charge) Worker() *Worker {
	if !c.live {
		return nil
	}
	return c.worker
}

// booked reports whether the charge stands in its worker's account: one of a
// generation that has passed does not, though it still counts as in flight.
func (c *Charge) booked() bool { return c.live && c.generation == c.worker.generation }

// Predicted returns the time to the first token that the worker was chosen by, in
// seconds; 0 if nothing was learned of it yet.
func (c *Charge) Predicted() float64 { return c.predicted }

// Prompt returns the prompt tokens that the charge counts with.
func (c *Charge) Prompt() int64 { return c.prompt }

// Generated returns the tokens generated so far.
func (c *Charge) Generated() int64 { return c.generated.Load() }

// Grow says that n more tokens were generated. It takes the lock only when
// the answer outgrows what was booked.
func (l *Ledger) Grow(c *Charge, n int64) {
	g := c.generated.Add(n)
	if g <= c.expect {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.booked() {
		return
	}
	// An answer that runs past what was expected is booked ahead by a sixteenth,
	// so that a long one does not take the lock at every token.
	c.expect = g + g/16 + 16
	if over := c.own() - c.kv; over > 0 {
		c.kv += over
		c.worker.kv += over
		c.worker.post()
	}
}

// First says that the first token of a request is there: its prefill is over.
// It reports the tokens that the worker computed for it and since when, from
// which the worker's rate is learned.
func (l *Ledger) First(c *Charge, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.booked() || c.first {
		return
	}
	c.first = true
	w := c.worker
	if took := now - c.sent; took > 0 {
		if c.alone && c.hit*8 < c.prompt {
			w.curve.learn(c.prompt, float64(took)/1e9)
		}
		if c.pending < c.work {
			w.learnPrefill(c.pending+c.work, took)
		}
		w.ttft.add(float64(took) / 1e9)
	}
	w.computed(c)
	w.turned = now
	w.check()
	w.post()
	w.progressAt = now
}

// Settle replaces the estimate of a prompt by its real length. cached is what
// of it was in the worker's cache, -1 where that is unknown.
func (l *Ledger) Settle(c *Charge, prompt, cached int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.booked() || prompt <= 0 {
		return
	}
	c.prompt = prompt
	kv := c.own()
	c.worker.kv += kv - c.kv
	c.kv = kv
	if cached >= 0 {
		c.worker.learnCredit(c.believed, cached)
		c.hit = cached
	}
	c.worker.post()
}

// Outcome is how a request ended at its worker, as far as the worker is to
// blame or to praise.
type Outcome byte

// The outcomes.
const (
	Neutral Outcome = iota // cancelled, or a client's own mistake
	Served
	Failed
	Erred // it answered with an error of its own
	Busy  // 429 or 503: alive, without room
)

// Release gives back what a charge has booked, once; a second call does
// nothing. It reports whether this call was the one.
func (l *Ledger) Release(c *Charge, how Outcome, now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.live {
		return false
	}
	w := c.worker
	c.live = false
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		w.charges = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	w.inflight--
	if c.generation == w.generation {
		w.kv -= c.kv
		w.computed(c)
		w.uncover(c)
		w.check()
		w.judge(l, how, now)
		w.tokens += c.generated.Load()
	}
	if c.generation == w.generation && how == Served {
		if g := c.generated.Load(); g > 8 && c.first {
			w.learnDecode(g, now-c.sent)
		}
	}
	w.post()
	c.kv, c.prefill, c.work, c.chunks, c.covered = 0, 0, 0, nil, 0
	return true
}

// Try returns the charge's worker and generation, to be left out of the next
// choice. The charge must have been picked.
func (c *Charge) Try() Try { return Try{c.worker, c.generation} }
