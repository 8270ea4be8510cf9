package sim

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"roundhouse/measure/stat"
)

// Policy places jobs. The fleet tells it what a router would see, and nothing
// else.
type Policy interface {
	Name() string
	// Place chooses a worker for a job; -1 keeps the job until Ended is called
	// the next time.
	Place(f *Fleet, j *Job, now float64) int
	First(f *Fleet, j *Job, now float64)
	Ended(f *Fleet, j *Job, now float64)
	// Scraped tells that the figures of Seen are fresh.
	Scraped(f *Fleet, now float64)
}

// Gauge is what a scrape shows of a worker.
type Gauge struct {
	Usage            float64
	Running, Waiting int
	WaitingTokens    int
	PrefillTokens    int      // still to be computed, of all that have no first token
	Evicted          []uint64 // prefix blocks, since the scrape before
	Queries, Hits    float64  // tokens of prompts computed so far, and of these those that were cached
}

// Scenario is one traffic on one fleet.
type Scenario struct {
	Name    string
	Workers []Speed
	Joins   map[int]float64 // workers that join later, and when
	Stale   float64         // seconds between scrapes
	Old     float64         // seconds for which a worker shows the same figures
	From    float64         // jobs that come earlier only warm the fleet up
	Jobs    []Job
	Watch   Watch // of its metrics; Every 0: none
	Goal    Goal
	Told    func(Times) // each answer's; nil: nobody is
}

// Goal is what a good answer meets, in seconds; 0 asks nothing.
type Goal struct{ TTFT, TPOT, E2EL float64 }

// met reports whether an answer is good.
func (g Goal) met(ttft, tpot, e2el float64) bool {
	ok := func(is, most float64) bool { return most == 0 || is <= most }
	return ok(ttft, g.TTFT) && ok(tpot, g.TPOT) && ok(e2el, g.E2EL)
}

// Fleet runs a scenario under a policy.
type Fleet struct {
	Seen    []Gauge
	Seed    uint64
	engines []computer
	speeds  []Speed
	busy    []bool
	shown   []float64 // since when a worker shows what it shows
	old     float64
	joins   map[int]float64
	now     float64
	events  eventHeap
	serial  int
	queued  [][]*Job // by door, in the order in which they go
	policy  Policy
	peak    int      // of queued
	scraped float64  // when the figures of Seen were
	watched *watched // nil: nobody watches
}

// Outcome is what a policy made of a scenario.
type Outcome struct {
	Policy        string
	Mean          float64 // time to first token, seconds
	P50, P90, P99 float64
	Goodput       float64 // share of requests with a first token within their due time
	Seconds       float64 // until the last answer

	TTFT, TPOT, E2EL, Queue Spread // from a request's arrival; Queue is its wait until it is computed
	Preemptions             int
	Tokens                  int     // generated
	Good                    float64 // share of all requests that meet the scenario's goal
	Peak                    int     // requests that waited at the door at once
}

// Times are one request's, in seconds; TPOT is 0 of a single token.
type Times struct{ TTFT, TPOT, E2EL float64 }

// Spread is how a time is spread over requests, in seconds.
type Spread struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
}

// SpreadOf is the spread of some times.
func SpreadOf(x []float64) Spread {
	s := stat.Sorted(x)
	return Spread{stat.Mean(s), stat.Percentile(s, 50), stat.Percentile(s, 95), stat.Percentile(s, 99)}
}

// Due is the time within which a job's first token counts as good: a second, and four
// times what its prompt alone takes a worker.
func (s *Speed) Due(j *Job) float64 { return 1 + 4*s.prefill(j.Prompt) }

type event struct {
	at     float64
	serial int
	do     func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].serial < h[j].serial
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *eventHeap) Push(x any) { *h = append(*h, x.(event)) }

// Pop implements heap.Interface.
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

func (f *Fleet) at(t float64, do func()) {
	f.serial++
	heap.Push(&f.events, event{t, f.serial, do})
}

// Workers returns how many workers there are, and Up whether one has joined.
func (f *Fleet) Workers() int { return len(f.engines) }

// Up reports whether a worker takes requests by now.
func (f *Fleet) Up(w int) bool { return f.now >= f.joins[w] }

// Run plays a scenario and returns its outcome.
func Run(s *Scenario, p Policy, seed uint64) Outcome { return run(s, p, seed, func(*Fleet) {}) }

// run calls look after every event.
func run(s *Scenario, p Policy, seed uint64, look func(*Fleet)) Outcome {
	f := &Fleet{Seed: seed, joins: s.Joins, policy: p, Seen: make([]Gauge, len(s.Workers)), speeds: s.Workers, busy: make([]bool, len(s.Workers)), old: s.Old}
	for _, w := range s.Workers {
		f.engines = append(f.engines, newComputer(w))
		f.shown = append(f.shown, -s.Old*float64(len(f.shown))/float64(len(s.Workers))) // not all at once
	}
	jobs := make([]*Job, len(s.Jobs))
	for i := range s.Jobs {
		j := s.Jobs[i]
		jobs[i] = &j
		if d, ok := p.(*doors); ok {
			j.door = i % len(d.all)
		}
		f.at(j.At, func() { f.arrive(jobs[i]) })
	}
	left := len(jobs)
	if s.Stale > 0 {
		var scrape func()
		scrape = func() {
			f.scrape()
			if left > 0 && f.now < s.Jobs[len(s.Jobs)-1].At+600 {
				f.at(f.now+s.Stale, scrape)
			}
		}
		f.at(0, scrape)
	}
	if s.Watch.Every > 0 {
		f.watched = newWatched(f, s.Watch.Say)
		f.at(0, func() { f.watch(s.Watch.Every, func() bool { return f.now < s.Jobs[len(s.Jobs)-1].At }) })
	}
	for len(f.events) > 0 {
		e := heap.Pop(&f.events).(event)
		f.now = e.at
		if s.Stale == 0 {
			f.scrape()
		}
		e.do()
		look(f)
	}
	jobs = slices.DeleteFunc(jobs, func(j *Job) bool { return j.At < s.From })
	o := f.outcome(p.Name(), jobs)
	f.measure(&o, jobs, s.Goal, s.Told)
	return o
}

// measure takes the times of all answers, as bench defines them: a job's own first and
// last token count.
func (f *Fleet) measure(o *Outcome, jobs []*Job, goal Goal, told func(Times)) {
	var ttft, tpot, e2el, queue []float64
	for _, j := range jobs {
		if j.end == 0 {
			continue
		}
		over := f.speeds[j.worker].Overhead
		first, end := j.first-j.At+over, j.end-j.At+over
		ttft, e2el, queue = append(ttft, first), append(e2el, end), append(queue, j.began-j.At)
		each := 0.0
		if j.out > 1 {
			each = (j.end - j.first) / float64(j.out-1)
			tpot = append(tpot, each)
		}
		if told != nil {
			told(Times{first, each, end})
		}
		if goal.met(first, each, end) {
			o.Good += 1 / float64(len(jobs))
		}
		o.Tokens += j.out
	}
	o.TTFT, o.TPOT, o.E2EL, o.Queue = SpreadOf(ttft), SpreadOf(tpot), SpreadOf(e2el), SpreadOf(queue)
	for _, e := range f.engines {
		o.Preemptions += e.counted().preempted
	}
	o.Peak = f.peak
}

func (f *Fleet) scrape() {
	for i, e := range f.engines {
		if f.old == 0 || f.now >= f.shown[i]+f.old {
			f.Seen[i] = e.gauge()
			f.Seen[i].Evicted = e.evicted()
			f.shown[i] = f.now
		}
	}
	f.scraped = f.now
	f.policy.Scraped(f, f.now)
	f.pump() // what is new may be room
}

// arrive lets a job's door place it, unless others wait there already.
func (f *Fleet) arrive(j *Job) {
	for j.door >= len(f.queued) {
		f.queued = append(f.queued, nil)
	}
	if len(f.queued[j.door]) == 0 && f.place(j) {
		return
	}
	if o, ok := f.policy.(interface{ turn(*Job, float64) float64 }); ok {
		j.turn = o.turn(j, f.now)
	}
	held := f.queued[j.door]
	at, _ := slices.BinarySearchFunc(held, j, func(a, b *Job) int { return cmp.Compare(a.turn, b.turn) })
	f.queued[j.door] = slices.Insert(held, at, j)
	f.peak = max(f.peak, len(f.queued[j.door]))
}

func (f *Fleet) place(j *Job) bool {
	w := f.policy.Place(f, j, f.now)
	if w < 0 {
		return false
	}
	j.worker, j.sent = w, f.now
	f.engines[w].add(j, f.now)
	if !f.busy[w] {
		f.step(w)
	}
	return true
}

// pump lets those whom a door holds go, until one must stay.
func (f *Fleet) pump() {
	for i := range f.queued {
		n := 0
		for n < len(f.queued[i]) && f.place(f.queued[i][n]) {
			n++
		}
		f.queued[i] = slices.Delete(f.queued[i], 0, n)
	}
}

// step starts a worker's next step and does what follows at its end.
func (f *Fleet) step(w int) {
	e := f.engines[w]
	f.busy[w] = true
	f.at(e.step(f.now), func() {
		begun, finished := e.ended()
		for _, j := range begun {
			if f.watched != nil {
				f.watched.first(j)
			}
			f.policy.First(f, j, f.now)
		}
		for _, j := range finished {
			if f.watched != nil {
				f.watched.last(j)
			}
			f.policy.Ended(f, j, f.now)
		}
		if len(finished)+len(begun) > 0 {
			f.pump()
		}
		f.busy[w] = false
		if !e.idle() {
			f.step(w)
		}
	})
}

func (f *Fleet) outcome(name string, jobs []*Job) Outcome {
	o := Outcome{Policy: name}
	times := make([]float64, 0, len(jobs))
	good := 0
	for _, j := range jobs {
		t := math.Inf(1)
		if j.first > 0 {
			t = j.first - j.At
		}
		times = append(times, t)
		o.Mean += t / float64(len(jobs))
		if t <= f.speeds[0].Due(j) {
			good++
		}
		o.Seconds = max(o.Seconds, j.end)
	}
	slices.Sort(times)
	o.P50, o.P90, o.P99 = times[len(times)/2], times[len(times)*9/10], times[len(times)*99/100]
	o.Goodput = float64(good) / float64(len(jobs))
	return o
}
