package sim

import "container/list"

// Speed is how fast a simulated engine computes. A step takes Base, plus
// PerPrefill for each prompt token in it and PerDecode for each running
// request, and what each of them reads of its context. Seconds.
type Speed struct {
	Base, PerPrefill, PerDecode float64
	PerPair                     float64 // of a prompt token and one before it
	PerContext                  float64 // of a running request and one token that it reads
	Budget                      int     // tokens a step
	Capacity                    int     // tokens of KV
	Longest                     int     // tokens of a prompt
}

// Fitted is our own worker on the demonstration model and two cores of a
// machine that did other work beside, as `go run ./balancer/sim/fit` found it.
var Fitted = Speed{Base: 0.0003, PerPrefill: 3.5e-5, PerPair: 3.8e-8, PerDecode: 8.7e-5, PerContext: 2.45e-7, Budget: 2048, Capacity: 104_832, Longest: 8000}

// Accelerator is a mid-size model on one accelerator: about 16 000 prompt
// tokens a second and 60 tokens a second of one stream.
var Accelerator = Speed{Base: 0.012, PerPrefill: 1.0 / 16000, PerDecode: 0.00015, Budget: 2048, Capacity: 120_000, Longest: 24_000}

// slower is an engine whose every step takes so many times as long.
func (s Speed) slower(times float64) Speed {
	s.Base, s.PerPrefill, s.PerPair, s.PerDecode, s.PerContext = times*s.Base, times*s.PerPrefill, times*s.PerPair, times*s.PerDecode, times*s.PerContext
	return s
}

// Work is what a job takes of an engine alone, its steps shared with sixty-three
// others.
func (s *Speed) Work(j *Job) float64 {
	p, o, cached := float64(j.Prompt), float64(j.Output), float64(j.shared)
	return s.prefill(j.Prompt) - cached*(s.PerPrefill+cached/2*s.PerPair) + o*(s.Base/64+s.PerDecode+(p+o/2)*s.PerContext)
}

// prefill is how long a prompt alone takes, steps left out.
func (s *Speed) prefill(tokens int) float64 {
	p := float64(tokens)
	return p*s.PerPrefill + p*p/2*s.PerPair
}

// Job is one request of a simulated traffic.
type Job struct {
	At     float64 // seconds
	Prompt int     // tokens
	Output int     // tokens
	Blocks []uint64
	Key    int
	shared int // of the prompt, in many others too

	worker  int
	door    int // that sent it, of several
	at      int // the worker that it was placed at
	done    int // prompt tokens computed
	cached  int
	out     int
	sent    float64
	first   float64 // when the first token came; 0: not yet
	end     float64
	state   any // the policy's own
	preempt int
}

// blockTokens is how many tokens one of a job's blocks stands for.
const blockTokens = 512

// engine is one simulated worker: continuous batching with chunked prefill
// under a token budget, a KV cache with a limit, preemption of the last, and
// a cache of prefixes in what is idle.
type engine struct {
	speed   Speed
	waiting []*Job
	running []*Job
	used    int // tokens of live requests
	busy    bool

	prefix map[uint64]*list.Element
	lru    *list.List
}

func newEngine(s Speed) *engine {
	return &engine{speed: s, prefix: map[uint64]*list.Element{}, lru: list.New()}
}

// hit returns how many tokens of the job lie in the cache.
func (e *engine) hit(j *Job) int {
	n := 0
	for _, b := range j.Blocks {
		el, ok := e.prefix[b]
		if !ok {
			break
		}
		e.lru.MoveToFront(el)
		n += blockTokens
	}
	return min(n, max(0, j.Prompt-1))
}

// keep puts a finished prompt's blocks into the cache.
func (e *engine) keep(j *Job) {
	for _, b := range j.Blocks {
		if el, ok := e.prefix[b]; ok {
			e.lru.MoveToFront(el)
			continue
		}
		e.prefix[b] = e.lru.PushFront(b)
	}
	for e.lru.Len()*blockTokens > max(e.speed.Capacity-e.used, 0)+blockTokens {
		last := e.lru.Back()
		delete(e.prefix, last.Value.(uint64))
		e.lru.Remove(last)
	}
}

// admit moves what fits from waiting to running.
func (e *engine) admit() {
	for len(e.waiting) > 0 && len(e.running) < 256 {
		j := e.waiting[0]
		if e.used+j.Prompt+j.out > e.speed.Capacity && len(e.running) > 0 {
			return
		}
		e.waiting = e.waiting[1:]
		j.cached = e.hit(j)
		j.done = j.cached
		e.used += j.Prompt + j.out
		e.running = append(e.running, j)
	}
}

// step runs one step that ends at the returned time; finished are the jobs
// that end with it, begun those whose first token comes with it.
func (e *engine) step(now float64) (until float64, begun, finished []*Job) {
	e.admit()
	budget, prefill, decodes := e.speed.Budget, 0, 0
	reads := 0.0 // seconds of reading context
	var next []*Job
	for _, j := range e.running {
		if j.done >= j.Prompt+preempted(j) {
			decodes++
			reads += float64(j.Prompt+j.out) * e.speed.PerContext
			budget--
		}
	}
	var last []*Job
	for _, j := range e.running {
		need := j.Prompt + preempted(j) - j.done
		if need > 0 {
			take := min(need, max(budget, 0))
			budget -= take
			prefill += take
			reads += float64(take) * (float64(j.done) + float64(take)/2) * e.speed.PerPair
			j.done += take
			if j.done < j.Prompt+preempted(j) {
				next = append(next, j)
				continue
			}
		}
		last = append(last, j)
	}
	until = now + e.speed.Base + float64(prefill)*e.speed.PerPrefill + float64(decodes)*e.speed.PerDecode + reads
	for _, j := range last {
		j.out++
		e.used++
		if j.first == 0 {
			j.first = until
			begun = append(begun, j)
			e.keep(j)
		}
		if j.out >= j.Output {
			j.end = until
			e.used -= j.Prompt + j.out
			finished = append(finished, j)
			continue
		}
		next = append(next, j)
	}
	e.running = next
	for e.used > e.speed.Capacity && len(e.running) > 1 {
		j := e.running[len(e.running)-1]
		e.running = e.running[:len(e.running)-1]
		e.used -= j.Prompt + j.out
		j.preempt, j.done = j.out, 0
		e.waiting = append([]*Job{j}, e.waiting...)
	}
	return until, begun, finished
}

// preempted is what a job must compute again beside its prompt.
func preempted(j *Job) int { return j.preempt }

func (e *engine) idle() bool { return len(e.running) == 0 && len(e.waiting) == 0 }
