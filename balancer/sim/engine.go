package sim

import (
	"cmp"
	"slices"

	"roundhouse/worker/api"
)

// Job is one request of a simulated traffic.
type Job struct {
	At     float64 // seconds
	Prompt int     // tokens
	Output int     // tokens
	Blocks []uint64
	Key    int
	shared int // of the prompt, in many others too

	worker  int
	door    int     // that sends it, of several
	turn    float64 // when it is sent, among those that its door holds
	done    int     // tokens computed
	cached  int
	told    bool // its worker is told how long it has waited
	out     int
	indexed int // of its blocks, those that others may hit
	order   int // of arrival at its worker
	since   int // the worker's step then
	sent    float64
	began   float64 // when it was first computed
	first   float64 // when the first token came; 0: not yet
	token   float64 // when the last one did
	end     float64
	state   any // the policy's own
}

// tokens is what there is of a job: its prompt and what was generated.
func (j *Job) tokens() int { return j.Prompt + j.out }

func (j *Job) remaining() int { return j.tokens() - j.done }

// prefilling says that a job lacks more than its newest token.
func (j *Job) prefilling() bool { return j.out == 0 || j.remaining() > 1 }

// computer is one simulated worker.
type computer interface {
	add(j *Job, now float64)
	idle() bool
	step(now float64) (until float64) // begins a step
	ended() (begun, finished []*Job)  // ends it: whose first token it brought, and who is done
	gauge() Gauge                     // what a scrape shows
	evicted() []uint64                // prefix blocks, since it was asked the last time
	counted() *counts
	live() []*Job                          // that hold KV
	resident(door int) (own, others int64) // what it holds of one door, each block counted once, and of the others
}

// counts is what an engine counts of its work.
type counts struct {
	preempted, said int    // times, and tokens
	queries, hits   int    // tokens of prompts whose first token has come, and of these those that were cached
	tally           *tally // nil: nobody watches
}

func (c *counts) counted() *counts { return c }

func newComputer(s Speed) computer {
	if s.InOrder {
		return newOrdered(s)
	}
	return newEngine(s)
}

// engine is one simulated worker of ours: decodes first, then prefills, running
// and waiting alike, the shortest remainder first with ageing, half the budget
// each while others wait; a KV cache with a limit; preemption of the last.
type engine struct {
	speed   Speed
	blocks  blocks
	waiting []*Job // the most urgent first
	running []*Job // in the order of admission
	steps   int
	began   []float64 // when each did
	arrived int
	list    []*Job // reused

	counts

	begun, finished []*Job // by the step under way
}

func newEngine(s Speed) *engine {
	return &engine{speed: s, blocks: newBlocks(s.Capacity)}
}

// add takes a job in.
func (e *engine) add(j *Job, now float64) {
	e.arrived++
	j.order, j.since = e.arrived, e.steps
	if since := max(j.At, now-api.MostWaited.Seconds()); j.told && since < now {
		j.since, _ = slices.BinarySearch(e.began, since) // it ages from its arrival at the door on
	}
	e.wait(j)
}

// wait puts a job among those that wait. All age alike, so that their order
// stays as it is.
func (e *engine) wait(j *Job) {
	at, _ := slices.BinarySearchFunc(e.waiting, j, e.urgency)
	e.waiting = slices.Insert(e.waiting, at, j)
}

// weight is what a job has still to compute, and later the same for one that
// came later: the least goes first.
func (e *engine) weight(j *Job) int {
	return j.remaining() + j.since*max(1, e.speed.Budget/16)
}

func (e *engine) urgency(a, b *Job) int {
	return cmp.Or(cmp.Compare(e.weight(a), e.weight(b)), cmp.Compare(a.order, b.order))
}

func (e *engine) ended() (begun, finished []*Job) { return e.begun, e.finished }

func (e *engine) live() []*Job { return e.running }

func (e *engine) gauge() Gauge {
	g := Gauge{Usage: float64(e.blocks.used) / float64(e.speed.Capacity), Running: len(e.running), Waiting: len(e.waiting)}
	for _, j := range e.waiting {
		g.WaitingTokens += j.Prompt
		g.PrefillTokens += j.Prompt
	}
	for _, j := range e.running {
		g.PrefillTokens += max(0, j.Prompt-j.done)
	}
	return g
}

func (e *engine) evicted() (gone []uint64) {
	for _, d := range e.blocks.evicted {
		if e.blocks.known[d] == nil {
			gone = append(gone, d)
		}
	}
	e.blocks.evicted = nil
	return gone
}

// step runs one step that ends at the returned time.
func (e *engine) step(now float64) (until float64) {
	var begun, finished []*Job
	e.steps++
	e.began = append(e.began, now)
	preempted := e.makeRoom()
	took, budget, tokens := e.speed.Base, e.speed.Budget, 0
	var last []*Job // who gets a token
	for _, j := range e.running {
		if !j.prefilling() {
			took += e.speed.PerDecode + float64(j.tokens())*e.speed.PerContext
			budget--
			tokens++
			last = append(last, j)
		}
	}
	for _, p := range e.prefills(budget, preempted) {
		j, count := p.job, float64(p.count)
		tokens += p.count
		if j.began == 0 {
			j.began = now
		}
		took += count*e.speed.PerPrefill + count*(float64(j.done)+count/2)*e.speed.PerPair
		j.done += p.count
		e.blocks.computed(j)
		if j.remaining() == 0 {
			took += e.speed.PerDecode // its token is chosen like a decode's
			last = append(last, j)
		}
	}
	until = now + took
	if e.tally != nil && tokens > 0 {
		e.tally.observe("vllm:iteration_tokens_total", float64(tokens))
	}
	for _, j := range last {
		j.done = j.tokens()
		j.out++
		e.said++
		if e.tally != nil && j.first > 0 {
			e.tally.observe("vllm:inter_token_latency_seconds", until-j.token)
		}
		j.token = until
		e.blocks.used++
		if j.first == 0 {
			j.first = until
			begun = append(begun, j)
		}
		if j.out >= j.Output {
			j.end = until
			e.running = slices.DeleteFunc(e.running, func(r *Job) bool { return r == j })
			e.blocks.release(j)
			finished = append(finished, j)
		}
	}
	e.blocks.evict()
	e.begun, e.finished = begun, finished
	return until
}

// makeRoom sets running jobs back to their beginning until what is held fits,
// the one that arrived last first.
func (e *engine) makeRoom() (preempted bool) {
	for e.blocks.used > e.speed.Capacity && len(e.running) > 1 {
		j := slices.MaxFunc(e.running, func(a, b *Job) int { return a.order - b.order })
		e.running = slices.DeleteFunc(e.running, func(r *Job) bool { return r == j })
		e.blocks.release(j)
		j.done = 0
		e.wait(j)
		e.preempted++
		preempted = true
	}
	return preempted
}

// part is how much of a prompt a step computes.
type part struct {
	job   *Job
	count int
}

// prefills spends what is left of a step's budget, and admits whom it reaches.
// Nobody starts in a step that preempted, and nobody overtakes one who has
// waited long and lacks room.
func (e *engine) prefills(budget int, preempted bool) (parts []part) {
	e.list = e.list[:0]
	for _, j := range e.running {
		if j.prefilling() {
			e.list = append(e.list, j)
		}
	}
	slices.SortFunc(e.list, e.urgency)
	running, next, closed := e.list, 0, preempted
	for budget > 0 {
		waits := next < len(e.waiting) && !closed
		var j *Job
		switch {
		case len(running) > 0 && (!waits || e.urgency(running[0], e.waiting[next]) < 0):
			j, running = running[0], running[1:]
		case waits:
			j = e.waiting[next]
			if !e.admit(j, next) {
				closed = len(e.running) >= e.speed.seats() || e.weight(j) <= e.steps*max(1, e.speed.Budget/16)
				next++
				continue
			}
		default:
			return parts
		}
		most := budget
		if len(running)+len(e.waiting)-next > 0 {
			most = min(most, max(1, e.speed.Budget/2))
		}
		count := min(j.remaining(), most)
		budget -= count
		parts = append(parts, part{j, count})
	}
	return parts
}

// admit lets one who waits run, if there is room for all of it.
func (e *engine) admit(j *Job, at int) bool {
	if len(e.running) >= e.speed.seats() {
		return false
	}
	hit, ok := e.blocks.admit(j, len(e.running) == 0)
	if !ok {
		return false
	}
	j.done = hit
	if j.first == 0 {
		j.cached = min(hit, j.Prompt)
	}
	e.waiting = slices.Delete(e.waiting, at, at+1)
	e.running = append(e.running, j)
	return true
}

func (e *engine) resident(door int) (own, others int64) { return residentOf(e.running, door) }

// residentOf is what jobs of one door hold, each block counted once, and those of
// the others, each for itself.
func residentOf(running []*Job, door int) (own, others int64) {
	type key struct {
		door   int
		digest uint64
	}
	seen := map[key]bool{}
	for _, j := range running {
		tokens := j.tokens()
		for _, d := range j.Blocks[:j.indexed] {
			if k := (key{j.door, d}); seen[k] {
				tokens -= blockTokens
			} else {
				seen[k] = true
			}
		}
		if j.door == door {
			own += int64(tokens)
		} else {
			others += int64(tokens)
		}
	}
	return own, others
}

func (e *engine) idle() bool { return len(e.running) == 0 && len(e.waiting) == 0 }
