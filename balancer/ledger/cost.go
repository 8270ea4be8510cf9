package ledger

import "math"

// sameRate is how near a worker's learned rate must be to its group's mean to be
// taken for it: what is left of noise would send requests astray.
const sameRate = 0.3

// aged is of how many prompts those that wait have waited so long that they count
// as short ones.
const aged = 8

// fewSamples are too few to tell a worker's rate from its group's.
const fewSamples = 4

// priorRate stands in for a prefill rate until one has been learned.
const priorRate = 4000

// demand is what one request and its group's recent prompts are to every worker
// alike. Of prompts that other doors sent only the tokens are known.
type demand struct {
	need     float64  // tokens of KV
	whole    float64  // work of the prompt where nothing of it is cached
	queues   []queued // of the class of such a prompt, by worker
	rate     float64  // work a second, the workers' mean
	second   float64  // that one unit of work takes
	perToken float64  // work
	unheard  float64  // work that another door may be sending to a worker that it takes first
	shorter  float64  // share of the work that is in prompts no longer than this one
	behind   float64  // requests at the door that wait for each worker
	least    float64  // work of the prompt where the most of it is cached
	coming   float64  // requests a second that come for each worker
	picky    bool     // not every worker may be asked
	grown    int64    // a worker that joined before then takes its full share
	joining  float64  // nanoseconds that it takes to get there
	eldest   float64  // the share of the worker that joined first
}

func (g *Group) demandOf(a *Ask, slowStart int64) demand {
	class := classOf(a.Prompt)
	c := demand{
		need: float64(a.Prompt + a.Expect), whole: float64(g.curve.work(a.Prompt, 0)), queues: g.queued(class),
		rate: g.meanRate(), perToken: max(g.perToken.v, 1), unheard: g.crowding.unheard(), shorter: 1,
		picky: a.Prefer != nil || a.Spare != nil || len(a.Tried) > 0 || a.Among != nil || a.Only != nil, grown: endless, joining: float64(slowStart),
		behind: float64(a.Behind) / float64(max(1, len(g.rows))),
	}
	c.least, c.coming = g.least(a, c.whole), g.crowding.rate(len(g.rows), c.rate)
	if slowStart > 0 {
		// Those that joined together are equals, however lately it was.
		first := g.firstJoin()
		c.grown, c.eldest = max(a.Now-slowStart, first), grownBy(a.Now-first, c.joining)
	}
	c.second = 1 / c.rate
	below, all := 0.0, 0.0
	for i, work := range g.mix {
		all += work
		if i <= class {
			below += work
		}
	}
	if all > 0 {
		c.shorter = below / all
	}
	return c
}

// tally is what a choice found of all workers together.
type tally struct {
	n       int     // that can take the request
	open    int     // of those, at which it would not only wait
	low     float64 // the least fill of those
	full    bool    // one has no room
	longest int64   // context of those that seem too short
	later   bool    // one whose context is longer is ready, and kept out for now
}

// weigh computes the terms of a request at every worker of the group: whether it
// can be asked and has room, its fill after taking the request, the predicted
// time to first token, and what the request costs there. Every term that a
// choice goes by is computed here, from the workers' rows and the demand.
func (g *Group) weigh(a *Ask, c *demand) tally {
	s := tally{low: math.Inf(1)}
	all, hits := g.terms[:len(g.rows)], a.Hits
	for i := range g.rows {
		r, t := &g.rows[i], &all[i]
		own := c.whole
		t.hit, t.believed, t.out = 0, 0, in
		if i < len(hits) && (hits[i] != 0 || a.Looks != nil) {
			own = g.cached(i, a)
		}
		if r.shut > a.Now || a.Prompt >= r.maxLen || c.picky {
			if t.out = g.excluded(i, a); t.out != in {
				if t.out == tooShort {
					s.longest = max(s.longest, r.maxLen)
				} else if t.out != notReady && t.out != outside && a.Prompt < r.maxLen {
					s.later = true
				}
				continue
			}
		}
		trust := 1.0
		if r.fresh < a.Now {
			trust = faded(a.Now - (r.fresh - freshFor))
		}
		second := r.second(c.rate, c.second)
		ahead, behind := r.work+r.elsewhere*c.perToken, c.behind
		if ahead > 0 && !r.shortest {
			ahead -= r.begun(a.Now, second)
		} else if r.shortest {
			ahead, behind = g.among(i, a, c, ahead)
		}
		wait := (ahead + r.foreignPrefill*c.perToken*trust + own) * second
		fill, noRoom := 0.0, false
		if r.capacity > 0 {
			foreign := r.foreign * trust
			fill = (r.booked + foreign + c.need) / r.capacity
			if fill > lowFill {
				noRoom, fill = g.crowded(i, a, c, foreign, fill)
			}
			// A prefill shares its steps with what is being decoded there, which takes the
			// longer the more KV it reads.
			wait *= 1 + fill/2
		} else {
			noRoom = r.limit > 0 && r.there >= int64(r.limit) && trust > 0
			wait *= 1 + float64(r.there)/256
		}
		t.wait, t.fill, t.grown, t.there = wait, fill, 1, r.there
		t.cost = wait + own*second*behind + c.again(r, ahead, own, second) // those behind it wait for it
		if r.theirs {
			t.cost += c.unheard * second * (1 + fill/2)
		}
		if r.joined > c.grown {
			t.slow(grownBy(a.Now-r.joined, c.joining) / c.eldest)
		}
		if noRoom && !a.Force {
			t.out, s.full = full, true
			continue
		}
		s.n++
		if t.busy = false; r.queues < a.Now || !r.busy(a, second, c.perToken) {
			s.open++
		} else {
			t.busy = true
		}
		if t.fill < s.low { // min would look for NaN, at a third of the time of all this
			s.low = t.fill
		}
	}
	return s
}

// again is what those will wait that come while the prompts before a request are
// computed, for what is computed once more though another worker has it.
func (c *demand) again(r *row, ahead, own, second float64) float64 {
	if r.shortest {
		return 0
	}
	return c.coming * ahead * second * (own - c.least) * second
}

// among is the work before a request, and the prompts behind it, at a worker of ours that
// has so much to do.
func (g *Group) among(i int, a *Ask, c *demand, work float64) (ahead, behind float64) {
	if work <= 0 {
		return work, 0
	}
	at, uncached := &c.queues[i], a.Prompt
	if hit := g.terms[i].hit; hit != 0 {
		uncached -= int64(hit)
		at = &g.queued(classOf(uncached))[i]
	}
	return g.ahead(&g.rows[i], at, uncached, c)
}

// least is the work of a prompt at the worker that has the most of it.
func (g *Group) least(a *Ask, whole float64) float64 {
	best := 0.0
	for i := range min(len(a.Hits), len(g.rows)) {
		if hit := int64(a.Hits[i]); hit != 0 {
			best = max(best, float64(min(hit, a.Prompt))*g.rows[i].credit)
		}
	}
	if best == 0 {
		return whole
	}
	return float64(g.curve.work(a.Prompt, int64(best)))
}

// cached enters what of a prompt lies in a worker's cache, and returns the work
// that is left.
func (g *Group) cached(i int, a *Ask) float64 {
	t := &g.terms[i]
	t.believed = int32(min(int64(a.Hits[i]), a.Prompt))
	t.hit = int32(float64(t.believed) * g.rows[i].credit)
	return float64(g.curve.work(a.Prompt, int64(t.hit))) + a.look(i)
}

// crowded looks closer at a worker that would be nearly full: what live requests
// hold of the prompt needs no room of its own.
func (g *Group) crowded(i int, a *Ask, c *demand, foreign, fill float64) (noRoom bool, now float64) {
	r := &g.rows[i]
	if hit := int64(g.terms[i].hit); hit > 0 {
		fill = (r.booked + foreign + c.need - float64(g.workers[i].live(a, hit))) / r.capacity
	}
	// An engine that computes prompts as they come admits by what a prompt needs now. Of
	// what ours hold, the answers have grown to a half on average.
	room := 1 + float64(r.there)*float64(a.Expect)/2/r.capacity
	return r.shortest && fill > room && (r.there > 0 || foreign > r.capacity/2), fill
}

// grownBy is what part of its full share a worker of some age takes.
func grownBy(age int64, joining float64) float64 {
	return min(max(float64(age)/joining, 0.1), 1)
}

// slow makes a worker that has just joined seem fuller and slower than those
// that were there before, less and less: its caches are cold and its clocks not
// learned.
func (t *terms) slow(share float64) {
	t.grown = share
	t.wait /= share
	t.cost /= share
	t.fill = min(t.fill/share, max(t.fill, 1))
}

// ahead is the work that a worker does before the request's first token, and
// behind how many prompts wait for the request in turn.
//
// Most engines compute prompts in the order in which they come. Ours, which
// alone says how much it has still to prefill and for which this is, takes the
// shortest first; a longer one that has begun shares the steps with it token by
// token, and its tokens cost what they do at its end. Two prompts share a step:
// where shorter ones are before the request it shares with those, and with the
// longer one only about half of its own length; but where many wait the longer
// ones are old, and go before it.
func (g *Group) ahead(r *row, at *queued, uncached int64, c *demand) (ahead, behind float64) {
	elsewhere := r.elsewhere * c.perToken
	ahead = at.work + elsewhere*c.shorter
	if longer := r.work - at.work + elsewhere*(1-c.shorter); longer > 0 {
		meanwhile := float64(uncached) * r.mean
		if at.work > 0 {
			meanwhile *= min(1, (aged+r.prompts)/(2*aged))
		}
		ahead += min(longer, meanwhile)
	}
	return ahead, r.prompts - at.n
}

// second is what one unit of work takes the worker; usual is what it takes where
// so much is done in a second as the mean worker does.
func (r *row) second(mean, usual float64) float64 {
	if r.rate > 0 && math.Abs(r.rate-mean) >= sameRate*mean {
		return 1 / r.rate
	}
	return usual
}

// begun is what an engine that computes prompts as they come has done of the one
// under way. What takes more than twice as long as one was believed to take is
// not believed to go on.
func (r *row) begun(now int64, second float64) float64 {
	if r.prompts == 0 || r.elsewhere > 0 {
		return 0
	}
	done, one := float64(now-r.turned)/1e9/second, r.work/r.prompts
	if done > one {
		done = max(0, 2*one-done)
	}
	return done
}

// queued returns what the workers have in prompts up to a class of length.
func (g *Group) queued(class int) []queued {
	n := len(g.rows)
	return g.queues[class*n:][:n]
}
