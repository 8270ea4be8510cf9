package bench

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Plan is one load.
type Plan struct {
	Requests    []Request
	Due         []time.Duration // of each request
	Concurrency int             // requests at once, at most; 0: any number
	Duration    time.Duration   // dispatch ends after it, if > 0; without a rate the requests are used again and again until then
	WarmUp      []Request       // sent before, at once, and in no figure
	ProbeRate   float64         // one-token requests a second beside the load, past the cap
}

// Progress is how far a run has come.
type Progress struct {
	Elapsed                    time.Duration
	Sent, Done, Failed, Flying int
	Total                      int
	Tokens                     int
	Lag                        time.Duration // of the request sent last
}

// Outcome is what a run gave.
type Outcome struct {
	Samples  []Sample // in order of requests
	Probes   []Sample
	Began    time.Time
	Duration time.Duration // first dispatch to last answer
	Stopped  bool          // by the caller, before its end
	Client   Usage         // what the client itself took
}

// Run sends a plan's requests as they are due and waits for their answers. When ctx
// ends it sends no more, cuts what runs, and gives what there is. tell, if not nil,
// is called a few times a second.
func Run(ctx context.Context, c *Client, p Plan, tell func(Progress)) Outcome {
	warmUp(ctx, c, p)
	r := &run{client: c, plan: p, began: time.Now(), before: usageNow()}
	if p.Concurrency > 0 {
		r.slots = make(chan struct{}, p.Concurrency)
	}
	end := make(chan struct{})
	var watchers sync.WaitGroup
	if tell != nil {
		watchers.Go(func() { r.report(end, tell) })
	}
	if p.ProbeRate > 0 {
		watchers.Go(func() { r.probe(ctx, end) })
	}
	r.dispatch(ctx)
	r.flying.Wait()
	o := Outcome{Began: r.began, Duration: r.clock(), Stopped: ctx.Err() != nil, Client: usageNow().since(r.before)}
	close(end)
	watchers.Wait()
	for _, s := range r.samples {
		o.Samples = append(o.Samples, *s)
	}
	o.Probes = r.probes
	return o
}

// warmUp sends the warm-up's requests, as many at once as the load will have.
func warmUp(ctx context.Context, c *Client, p Plan) {
	slots := make(chan struct{}, max(1, p.Concurrency, min(len(p.WarmUp), 16)))
	var all sync.WaitGroup
	began := time.Now()
	for i := range p.WarmUp {
		slots <- struct{}{}
		all.Go(func() {
			var s Sample
			c.Do(ctx, &p.WarmUp[i], &s, func() time.Duration { return time.Since(began) })
			<-slots
		})
	}
	all.Wait()
}

// run is one run under way. samples is appended to by dispatch alone, each sample
// is written by the request's goroutine alone until flying is done.
type run struct {
	client  *Client
	plan    Plan
	began   time.Time
	before  Usage
	slots   chan struct{}
	samples []*Sample
	probes  []Sample
	flying  sync.WaitGroup

	sent, done, failed, tokens atomic.Int64
	lag                        atomic.Int64 // nanoseconds
}

func (r *run) clock() time.Duration { return time.Since(r.began) }

// dispatch starts each request at its due time. A slot is waited for by the
// request, not by the schedule: who comes next is due all the same.
func (r *run) dispatch(ctx context.Context) {
	if r.closed() {
		r.dispatchClosed(ctx)
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range r.plan.Requests {
		due := r.plan.Due[i]
		if r.plan.Duration > 0 && due > r.plan.Duration {
			return
		}
		if wait := due - r.clock(); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		} else if ctx.Err() != nil {
			return
		}
		s := &Sample{Due: due}
		r.samples = append(r.samples, s)
		r.flying.Go(func() {
			if r.slots != nil {
				select {
				case r.slots <- struct{}{}:
					defer func() { <-r.slots }()
				case <-ctx.Done():
					s.Cut = true
					return
				}
			}
			r.send(ctx, &r.plan.Requests[i], s)
		})
	}
}

// closed reports whether the load is a closed loop: all is due at once and a cap
// alone spreads it.
func (r *run) closed() bool {
	n := len(r.plan.Due)
	return r.plan.Concurrency > 0 && n > 0 && r.plan.Due[n-1] == 0
}

// dispatchClosed starts a request whenever another one has ended. A request of a
// closed loop is due when it is sent.
func (r *run) dispatchClosed(ctx context.Context) {
	for i := 0; ; i++ {
		if i >= len(r.plan.Requests) && (r.plan.Duration == 0 || r.clock() >= r.plan.Duration) {
			return
		}
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if i >= len(r.plan.Requests) && r.clock() >= r.plan.Duration {
			<-r.slots
			return
		}
		s := &Sample{Due: r.clock()}
		r.samples = append(r.samples, s)
		r.flying.Go(func() {
			defer func() { <-r.slots }()
			r.send(ctx, &r.plan.Requests[i%len(r.plan.Requests)], s)
		})
	}
}

func (r *run) send(ctx context.Context, q *Request, s *Sample) {
	r.sent.Add(1)
	r.lag.Store(int64(r.clock() - s.Due))
	r.client.Do(ctx, q, s, r.clock)
	r.done.Add(1)
	r.tokens.Add(int64(s.Output))
	if s.Err != "" {
		r.failed.Add(1)
	}
}

// probe sends one-token requests beside the load, so that a cap on the load does
// not hide how long a newcomer waits.
func (r *run) probe(ctx context.Context, end <-chan struct{}) {
	every := time.NewTicker(time.Duration(float64(time.Second) / r.plan.ProbeRate))
	defer every.Stop()
	for {
		select {
		case <-end:
			return
		case <-ctx.Done():
			return
		case <-every.C:
		}
		s := Sample{Due: r.clock()}
		r.client.Do(ctx, &Request{Prompt: "Hi", Output: 1}, &s, r.clock)
		r.probes = append(r.probes, s)
	}
}

// report tells the progress four times a second.
func (r *run) report(end <-chan struct{}, tell func(Progress)) {
	every := time.NewTicker(250 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-end:
			return
		case <-every.C:
		}
		sent, done := int(r.sent.Load()), int(r.done.Load())
		tell(Progress{
			Elapsed: r.clock(), Sent: sent, Done: done, Failed: int(r.failed.Load()), Flying: sent - done,
			Total: len(r.plan.Requests), Tokens: int(r.tokens.Load()), Lag: time.Duration(r.lag.Load()),
		})
	}
}

// Random returns the source of random numbers of a seed, one for each use, so that
// more of one do not change another.
func Random(seed uint64, use string) *rand.Rand {
	h := uint64(14695981039346656037) // FNV-1a
	for _, b := range []byte(use) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, h))
}
