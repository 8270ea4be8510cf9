package balancer

import (
	"slices"
	"sync"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/surface"
)

// How many requests that have ended are kept: of all, and of those that did not end
// well, which the others would soon push out.
const (
	keptEnded  = 2048
	keptFailed = 512
)

// past keeps the last requests that have ended. No text of theirs is among it.
type past struct {
	mu     sync.Mutex
	ok     ring
	failed ring
}

// ring is the last requests of one kind, written round and round.
type ring struct {
	list []bygone
	next int
}

func (r *ring) add(b *bygone, most int) {
	if len(r.list) < most {
		r.list = append(r.list, *b)
	} else {
		r.list[r.next%most] = *b
	}
	r.next++
}

// bygone is one request, as compact as it was seen.
type bygone struct {
	id, pool, worker, model, route, key, path string
	outcome, code                             string
	began                                     time.Time
	queued, first, took                       int64 // nanoseconds; first 0: there was none
	prompt, cached, generated                 int64 // tokens; -1: nobody has said
	status, priority, resumes                 int
	streamed                                  bool
}

// add keeps a request that has ended.
func (p *past) add(x *exchange) {
	a, r := &x.asked, &x.record
	b := bygone{
		id: a.id, worker: r.worker, model: a.model, path: a.path, outcome: r.outcome, code: r.code, began: a.wall,
		queued: r.queued, took: r.ended - a.start, prompt: -1, cached: -1, generated: -1, status: r.status,
		priority: a.priority, resumes: int(r.resumes.Load()), streamed: a.peek.Stream,
	}
	if a.pool != nil {
		b.pool = a.pool.Name
	}
	if a.route != nil {
		b.route = a.route.cfg.Name
	}
	if a.key != nil {
		b.key = a.key.Name
	}
	if r.first > 0 {
		b.first = r.first - a.start
	}
	switch u := &r.usage; {
	case u.Known:
		b.prompt, b.cached, b.generated = u.Prompt, max(0, u.Cached), u.Generated
	case r.generated.Load() > 0:
		b.generated = r.generated.Load()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.outcome == "ok" {
		p.ok.add(&b, keptEnded)
	} else {
		p.failed.add(&b, keptFailed)
	}
}

// list returns all that is kept, the newest first.
func (p *past) list() []bygone {
	p.mu.Lock()
	out := append(slices.Clone(p.ok.list), p.failed.list...)
	p.mu.Unlock()
	slices.SortFunc(out, func(a, b bygone) int { return b.ended().Compare(a.ended()) })
	return out
}

func (b *bygone) ended() time.Time { return b.began.Add(time.Duration(b.took)) }

// shown is the request as the admin API shows it.
func (b *bygone) shown(door string) control.Ended {
	e := control.Ended{
		ID: b.id, Pool: control.Known(b.pool), Worker: control.Known(b.worker), Model: control.Known(b.model), Route: control.Known(b.route),
		Key: control.Known(b.key), Priority: surface.PriorityNames[b.priority], Path: b.path, Status: b.status, Outcome: b.outcome, Reason: control.Known(b.code),
		Began: b.began.UTC(), End: b.ended().UTC(), QueueSeconds: float64(b.queued) / 1e9, Seconds: float64(b.took) / 1e9,
		Resumes: b.resumes, Streamed: b.streamed, Door: door,
	}
	if b.first > 0 {
		seconds := float64(b.first) / 1e9
		e.TTFTSeconds = &seconds
	}
	for n, to := range map[*int64]**int64{&b.prompt: &e.PromptTokens, &b.cached: &e.CachedTokens, &b.generated: &e.GeneratedTokens} {
		if *n >= 0 {
			*to = n
		}
	}
	return e
}

// Ended is what has ended, the newest first, as far as it is kept and a filter takes it.
func (d *Door) Ended(f control.EndedFilter) control.EndedRequests {
	out := control.EndedRequests{Schema: 1, At: time.Now().UTC(), Ended: []control.Ended{}}
	for _, b := range d.past.list() {
		if e := b.shown(d.id); f.Takes(&e) {
			if out.Ended = append(out.Ended, e); len(out.Ended) == f.Limit {
				break
			}
		}
	}
	return out
}
