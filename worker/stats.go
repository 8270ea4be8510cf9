package worker

import (
	"sync"
	"time"

	"roundhouse/worker/metrics"
)

// Stats are the engine's counters and histograms, for /metrics and the log.
type Stats struct {
	mu sync.Mutex
	s  Snapshot
}

// Snapshot is a copy of the statistics at one moment. Histograms have vLLM's
// names and buckets.
type Snapshot struct {
	Running, Waiting int
	Usage            float64 // of the KV cache, 0 to 1
	Blocks           int
	BlockTokens      int
	CapacityTokens   int
	Paused           bool // or asleep
	Asleep           int  // the level of sleep; 0: awake

	RunningAdapters, WaitingAdapters string // their names, with commas between

	PrefixQueries, PrefixHits int64
	Preemptions               int64
	PromptTokens              int64
	CachedPromptTokens        int64
	GenerationTokens          int64
	Finished                  map[Finish]int64
	Drafts                    int64
	DraftTokens               int64
	AcceptedTokens            int64
	AcceptedAt                []int64 // by position in the draft

	Histograms
}

// Histograms are the distributions over requests that have ended, and over steps.
type Histograms struct {
	TTFT, ITL, TPOT, E2E, Queue, Inference, Prefill, Decode             *metrics.Histogram
	PromptLen, GenerationLen, MaxGeneration, MaxTokens, PrefillComputed *metrics.Histogram
	ParamsN, Iteration                                                  *metrics.Histogram
}

var (
	ttftBounds = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	itlBounds  = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	e2eBounds  = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	iterBounds = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
)

// lengthBounds is 1, 2, 5, 10, 20, 50 … up to the longest context.
func lengthBounds(most int) []float64 {
	var bounds []float64
	for ten := 1; ; ten *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*ten > most {
				return bounds
			}
			bounds = append(bounds, float64(m*ten))
		}
	}
}

func newStats(maxModelLen int) *Stats {
	h, lengths := metrics.NewHistogram, lengthBounds(maxModelLen)
	return &Stats{s: Snapshot{
		Finished: map[Finish]int64{},
		Histograms: Histograms{
			TTFT: h(ttftBounds), ITL: h(itlBounds), TPOT: h(itlBounds),
			E2E: h(e2eBounds), Queue: h(e2eBounds), Inference: h(e2eBounds), Prefill: h(e2eBounds), Decode: h(e2eBounds),
			PromptLen: h(lengths), GenerationLen: h(lengths), MaxGeneration: h(lengths), MaxTokens: h(lengths), PrefillComputed: h(lengths),
			ParamsN: h([]float64{1, 2, 5, 10, 20}), Iteration: h(iterBounds),
		},
	}}
}

// Stats returns a copy of the engine's statistics.
func (e *Engine) Stats() Snapshot {
	e.stats.mu.Lock()
	defer e.stats.mu.Unlock()
	s := e.stats.s
	s.Finished = map[Finish]int64{}
	for k, v := range e.stats.s.Finished {
		s.Finished[k] = v
	}
	s.AcceptedAt = append([]int64(nil), s.AcceptedAt...)
	for _, h := range []**metrics.Histogram{&s.TTFT, &s.ITL, &s.TPOT, &s.E2E, &s.Queue, &s.Inference, &s.Prefill, &s.Decode,
		&s.PromptLen, &s.GenerationLen, &s.MaxGeneration, &s.MaxTokens, &s.PrefillComputed, &s.ParamsN, &s.Iteration} {
		*h = (*h).Clone()
	}
	return s
}

// stepTimes is when a step began and ended.
type stepTimes struct{ began, ended time.Time }

// requestTimes are the moments of a request's life.
type requestTimes struct {
	arrived, started, first, last time.Time
}

func (t *requestTimes) scheduled(s stepTimes) {
	if t.started.IsZero() {
		t.started = s.began
	}
}

func (t *requestTimes) firstToken(now time.Time, s *Stats) {
	t.first, t.last = now, now
	s.with(func(s *Snapshot) { s.TTFT.Observe(now.Sub(t.arrived).Seconds()) })
}

func (t *requestTimes) token(now time.Time, n int, s *Stats) {
	gap := now.Sub(t.last).Seconds()
	t.last = now
	if n > 0 && gap > 0 {
		s.with(func(s *Snapshot) { s.ITL.Observe(gap) })
	}
}

func (s *Stats) with(f func(*Snapshot)) {
	s.mu.Lock()
	f(&s.s)
	s.mu.Unlock()
}

func (s *Stats) arrive(r *request) {
	s.with(func(s *Snapshot) {
		s.ParamsN.Observe(float64(r.Params.N))
		s.MaxTokens.Observe(float64(r.Params.MaxTokens))
	})
}

func (s *Stats) token(r *request) {
	s.with(func(s *Snapshot) { s.GenerationTokens++ })
}

func (s *Stats) drafted(guessed, right int) {
	s.with(func(s *Snapshot) {
		s.Drafts++
		s.DraftTokens += int64(guessed)
		s.AcceptedTokens += int64(right)
		for len(s.AcceptedAt) < guessed {
			s.AcceptedAt = append(s.AcceptedAt, 0)
		}
		for i := range right {
			s.AcceptedAt[i]++
		}
	})
}

// finish counts a choice that has ended.
func (s *Stats) finish(r *request, q *Sequence, why Finish) {
	t, now := &r.times, time.Now()
	s.with(func(s *Snapshot) {
		s.Finished[why]++
		s.E2E.Observe(now.Sub(t.arrived).Seconds())
		s.PromptLen.Observe(float64(q.Prompt))
		n := len(q.Output()) - len(r.Resume)
		s.GenerationLen.Observe(float64(n))
		s.MaxGeneration.Observe(float64(n))
		if t.first.IsZero() {
			return
		}
		s.PrefillComputed.Observe(float64(q.Prompt - max(0, q.Cached)))
		s.Queue.Observe(t.started.Sub(t.arrived).Seconds())
		s.Prefill.Observe(t.first.Sub(t.started).Seconds())
		s.Decode.Observe(t.last.Sub(t.first).Seconds())
		s.Inference.Observe(t.last.Sub(t.started).Seconds())
		if n > 1 {
			s.TPOT.Observe(t.last.Sub(t.first).Seconds() / float64(n-1))
		}
	})
}

// step counts what a step computed.
func (s *Stats) step(plan Plan) {
	tokens, prompt := 0, 0
	for _, en := range plan.Entries {
		tokens += en.Count
		prompt += max(0, min(en.Start+en.Count, en.Seq.Prompt)-en.Start)
	}
	cached := 0
	for _, en := range plan.Entries {
		if en.Seq.Cached > 0 && en.Start == en.Seq.Cached && en.Seq.Prompt > en.Start && !en.Seq.counted {
			cached += en.Seq.Cached
		}
		en.Seq.counted = true
	}
	s.with(func(s *Snapshot) {
		s.Iteration.Observe(float64(tokens))
		s.PromptTokens += int64(prompt + cached)
		s.CachedPromptTokens += int64(cached)
	})
	s.preempted(plan)
}

// preempted counts who made room for a step.
func (s *Stats) preempted(plan Plan) {
	s.with(func(s *Snapshot) { s.Preemptions += int64(len(plan.Preempted)) })
}

// pooled counts a step of texts.
func (s *Stats) pooled(tokens int, batch []*pooled) {
	now := time.Now()
	s.with(func(s *Snapshot) {
		s.Iteration.Observe(float64(tokens))
		s.PromptTokens += int64(tokens)
		for _, j := range batch {
			s.Finished[FinishStop]++
			s.PromptLen.Observe(float64(len(j.text.Tokens)))
			s.E2E.Observe(now.Sub(j.began).Seconds())
		}
	})
}

// gauges records what stands now.
func (s *Stats) gauges(e *Engine) {
	queries, hits := e.cache.Counts()
	running, waiting := "", ""
	if e.cfg.Adapters.Count > 0 {
		running, waiting = e.adapterNames()
	}
	s.with(func(s *Snapshot) {
		s.RunningAdapters, s.WaitingAdapters = running, waiting
		s.Running, s.Waiting = e.sched.Running(), e.sched.Waiting()+len(e.pooling)+len(e.sight.queue)
		s.Usage, s.Blocks, s.BlockTokens = e.cache.Usage(), e.cache.Blocks(), e.cache.BlockTokens()
		s.CapacityTokens = e.cache.CapacityTokens()
		s.PrefixQueries, s.PrefixHits = queries, hits
		s.Paused, s.Asleep = e.suspended(), e.asleep
	})
}
