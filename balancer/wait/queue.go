package wait

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"roundhouse/balancer/ledger"
	"roundhouse/balancer/surface"
)

// Queue holds the requests of a pool that wait for room, or for a worker that
// has not enough to do. Classes are strict; within one, keys take turns by
// deficit round robin on tokens, so that a key with long prompts gets no more
// than its share. Of one key's the shorter go first, and the longer one has
// waited the shorter it counts.
type Queue struct {
	mu      sync.Mutex
	classes [surface.Priorities]class
	n       atomic.Int32
}

// class is the flows of one priority.
type class struct {
	flows []*flow
	next  int
	n     int
}

// flow is what waits of one key.
type flow struct {
	key     string
	weight  float64
	deficit float64
	waiters []*Waiter
}

// Place is where a request waits.
type Place struct {
	Class  int // of surface's priorities
	Key    string
	Weight float64
	Rank   float64 // among those of its key
}

// Waiter is one request that waits.
type Waiter struct {
	Place
	Granted chan ledger.Reason // holds one: the claim is booked, for this reason
	claim   *Claim
}

// Room is where a queue's requests find room.
type Room struct {
	Ledger  *ledger.Ledger
	Group   *ledger.Group
	Now     func() int64
	Workers iter.Seq[*ledger.Worker] // of the group
}

// quantum is the tokens that a key of weight 1 may take in one turn.
const quantum = 2048

// Add appends a request, unless limit others wait: then there is no waiter.
func (q *Queue) Add(c *Claim, at Place, limit int) *Waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	if int(q.n.Load()) >= limit {
		return nil
	}
	w := &Waiter{Place: at, Granted: make(chan ledger.Reason, 1), claim: c}
	of := &q.classes[at.Class]
	f := of.flow(at.Key, at.Weight)
	i := len(f.waiters)
	for i > 0 && f.waiters[i-1].Rank > w.Rank {
		i--
	}
	f.waiters = slices.Insert(f.waiters, i, w)
	of.n++
	q.n.Add(1)
	return w
}

// Len is how many wait.
func (q *Queue) Len() int { return int(q.n.Load()) }

// ByClass is how many wait in each class.
func (q *Queue) ByClass() (n [surface.Priorities]int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.classes {
		n[i] = q.classes[i].n
	}
	return n
}

func (c *class) flow(key string, weight float64) *flow {
	for _, f := range c.flows {
		if f.key == key {
			f.weight = weight
			return f
		}
	}
	f := &flow{key: key, weight: weight}
	c.flows = append(c.flows, f)
	return f
}

// Remove takes a waiter out, whether it was granted meanwhile or not.
func (q *Queue) Remove(w *Waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := &q.classes[w.Class]
	for i, f := range c.flows {
		for j, o := range f.waiters {
			if o == w {
				f.waiters = append(f.waiters[:j], f.waiters[j+1:]...)
				c.n--
				q.n.Add(-1)
				if len(f.waiters) == 0 {
					c.flows = append(c.flows[:i], c.flows[i+1:]...)
				}
				return
			}
		}
	}
}

// Position returns a request's place in the queue, from 1; 0: it does not wait.
func (q *Queue) Position(c *Claim) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := 0
	for i := range q.classes {
		for _, f := range q.classes[i].flows {
			for j, w := range f.waiters {
				if w.claim == c {
					return before + j*len(q.classes[i].flows) + 1
				}
			}
		}
		before += q.classes[i].n
	}
	return 0
}

// Pump gives room to those who wait, as long as there is some.
func (q *Queue) Pump(r *Room) {
	if q.n.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var kept []ledger.Try
	for i := range q.classes {
		if !q.classes[i].pump(q, r, &kept) {
			return
		}
	}
}

// pump serves one class and reports whether room may be left for the next. A
// request that no worker can take now, for reasons of its own (bound to one, or
// some tried), holds nobody else up; what becomes free at the workers that it may
// go to is kept for it from those behind it.
func (c *class) pump(q *Queue, r *Room, kept *[]ledger.Try) bool {
	stuck := 0
	for c.n > 0 && stuck < len(c.flows) {
		if c.next >= len(c.flows) {
			c.next = 0
		}
		f := c.flows[c.next]
		if f.deficit <= 0 {
			f.deficit += quantum * f.weight
			c.next++
			continue
		}
		served, full := f.serve(c, q, r, kept)
		if full {
			return false
		}
		if len(f.waiters) == 0 {
			c.flows = append(c.flows[:c.next], c.flows[c.next+1:]...)
			continue
		}
		if !served {
			stuck++
			c.next++
			continue
		}
		stuck = 0
	}
	return true
}

// serve places the first waiter of a flow that can be placed.
func (f *flow) serve(c *class, q *Queue, r *Room, kept *[]ledger.Try) (served, full bool) {
	for i, w := range f.waiters {
		ask, tried := &w.claim.Ask, w.claim.Ask.Tried
		ask.Now, ask.Behind = r.Now(), int(q.n.Load())-1
		ask.Tried = append(tried[:len(tried):len(tried)], *kept...)
		verdict, reason := w.claim.Pick(r.Ledger, r.Group)
		ask.Tried = tried
		switch {
		case verdict == ledger.Full && !w.claim.Bound && ask.Spare == nil && ask.Among == nil && ask.Only == nil && len(tried) == 0:
			return false, true
		case verdict == ledger.Full:
			*kept = w.claim.mayGoTo(r.Ledger, r.Workers, *kept)
			continue
		case verdict == ledger.None:
			continue
		}
		f.deficit -= float64(ask.Prompt + ask.Expect)
		f.waiters = append(f.waiters[:i], f.waiters[i+1:]...)
		c.n--
		q.n.Add(-1)
		w.Granted <- reason
		return true, false
	}
	return false, false
}
