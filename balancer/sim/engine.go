package sim

import "container/list"

// Speed is how fast a simulated engine computes. A step takes Base, plus
// PerPrefill for each prompt token in it and PerDecode for each running
// request. Seconds.
type Speed struct {
	Base, PerPrefill, PerDecode float64
	Budget                      int // tokens a step
	Capacity                    int // tokens of KV
}

// DefaultSpeed is that of a mid-size model on one accelerator: about 16 000
// prompt tokens a second and 60 tokens a second of one stream.
var DefaultSpeed = Speed{Base: 0.012, PerPrefill: 1.0 / 16000, PerDecode: 0.00015, Budget: 2048, Capacity: 120_000}

// Job is one request of a simulated traffic.
type Job struct {
	At     float64 // seconds
	Prompt int     // tokens
	Output int     // tokens
	Blocks []uint64
	Key    int

	worker  int
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
	var next []*Job
	for _, j := range e.running {
		if j.done >= j.Prompt+preempted(j) {
			decodes++
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
			j.done += take
			if j.done < j.Prompt+preempted(j) {
				next = append(next, j)
				continue
			}
		}
		last = append(last, j)
	}
	until = now + e.speed.Base + float64(prefill)*e.speed.PerPrefill + float64(decodes)*e.speed.PerDecode
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
