package balancer

import (
	"fmt"
	"math"
	"time"

	"roundhouse/balancer/decision"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wait"
	"roundhouse/plugins/pb"
)

// resuming reports whether the client is in the middle of its answer.
func (x *exchange) resuming() bool { return x.answer != nil && x.answer.Resumed() }

// place finds a worker with room for the exchange and books it there; it waits
// for one where there is none.
func (x *exchange) place() *surface.Failure {
	p, d := x.asked.pool, x.d
	x.prepare()
	if x.resuming() {
		x.booking.unpin()
	}
	x.booking.Ask.Eager = x.resuming() // someone is in the middle of its answer
	x.askPolicy()
	if p.Queue.Len() == 0 || x.resuming() {
		verdict, reason := x.booking.Pick(x.d.ledger, &x.asked.pool.Group)
		if verdict == ledger.Picked {
			x.placed(reason)
			return nil
		}
		if x.booking.Bound && x.booking.Ask.Prefer.Generation(d.ledger) == 0 {
			return surface.NotFound("the worker that holds this response is not there any more")
		}
	}
	return x.wait()
}

// waitsFor says why a request waits.
func (x *exchange) waitsFor() string {
	if !x.asked.pool.Alive(&x.d.fleet) {
		return "no worker of its pool is in service"
	}
	if x.pin != "" {
		return "room at " + x.pin
	}
	return "room: each worker of its pool that it may go to has enough to do"
}

// placed enters the decision of a choice. The worker may have left the pool since.
func (x *exchange) placed(reason ledger.Reason) {
	w := x.booking.Charge.Worker().Of.(*fleet.Worker)
	x.booking.arrive(w)
	x.record.worker = w.ID
	x.booking.reason = reason
	x.booking.sentAt = x.booking.Ask.Now
	x.d.metrics.Decision(&x.asked.pool.Decided, x.asked.pool.Name, x.asked.pool.PolicyNow(), reason)
	x.d.changed()
	x.explain(w)
	if !w.Own.Load() {
		// An engine that computes prompts as they come has this one in its cache before
		// it comes to the next.
		x.booking.remember(x.asked.pool)
	}
}

// explain keeps the choice just made, for those who ask why.
func (x *exchange) explain(w *fleet.Worker) {
	b, p := &x.booking, x.asked.pool
	now := b.Ask.Now
	x.d.why.Note(decision.Choice{
		Request: x.asked.id, Pool: p.Name, Policy: p.PolicyNow(), Reason: b.reason, Chosen: w.ID,
		At: x.asked.wall.Add(time.Duration(now - x.asked.start)), Need: b.Ask.Prompt + b.Ask.Expect,
	}, func(seen []ledger.Weighed) []ledger.Weighed {
		return x.d.ledger.Weighed(seen, &p.Group, w.Acct, decision.Candidates, now)
	})
}

// wait stands in the queue until there is room, the client leaves, or the
// time is over.
func (x *exchange) wait() *surface.Failure {
	p, d := x.asked.pool, x.d
	cfg := &x.v.set.Door.Queue
	limit, patience := cfg.MaxRequests, time.Duration(cfg.MaxWait)
	resuming := x.resuming()
	if resuming {
		// A stream that has begun is not refused for want of room in the queue.
		limit, patience = math.MaxInt32, time.Duration(x.v.set.Door.Limits.FirstByte)
	}
	began := d.now()
	wake := x.booking.awake()
	if wake == nil {
		return nil
	}
	w := p.Queue.Add(&x.booking.Claim, x.turn(), limit)
	if w == nil {
		if x.eagerly() {
			return nil
		}
		return &surface.Failure{Status: 503, Type: "service_unavailable", Code: "queue_full", Reason: "full", RetryAfter: p.Patience(&d.fleet),
			Message: fmt.Sprintf("the queue of pool %q is full (%d requests)", p.Name, cfg.MaxRequests)}
	}
	x.record.state.Store(phaseQueued)
	if resuming {
		x.record.state.Store(phaseParked)
	}
	p.Pump(&d.fleet)
	f := queueWait{x, w, wake, patience}.await()
	x.record.queued += d.now() - began
	x.record.state.CompareAndSwap(phaseParked, phaseStreaming)
	return f
}

// turn is where the request waits.
func (x *exchange) turn() wait.Place {
	at := wait.Place{Class: x.asked.priority, Weight: 1, Rank: x.d.ledger.Rank(&x.asked.pool.Group, x.booking.Ask.Prompt, x.d.now())}
	if x.resuming() {
		at.Rank = math.Inf(-1) // someone is in the middle of its answer
	}
	at.Key = x.asked.flow
	if k := x.asked.key; k != nil {
		at.Key, at.Weight = k.Name, float64(max(1, k.Cfg.Weight))
	}
	return at
}

// queueWait is one wait of an exchange in its pool's queue.
type queueWait struct {
	x        *exchange
	w        *wait.Waiter
	wake     chan struct{} // closed when nobody waits for the answer any more
	patience time.Duration
}

// await waits for a grant. A stream that is parked sends its heartbeats
// meanwhile.
func (s queueWait) await() *surface.Failure {
	x := s.x
	began, deadline := x.d.now(), time.NewTimer(s.patience)
	defer deadline.Stop()
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	for n := 1; ; n++ {
		select {
		case why := <-s.w.Granted:
			return s.granted(why)
		case <-s.wake:
			return s.leave(nil)
		case <-deadline.C:
			if x.d.now()-began < x.asked.pool.Gap.Load() { // its turn goes on, for minutes
				deadline.Reset(time.Second)
				n--
				continue
			}
			if f := s.leave(s.tooLong()); f == nil || !x.eagerly() {
				return f
			}
			return nil
		case <-beat.C:
			// A worker that died is known to be gone within a second; a worker
			// still there then is alive, and does not want this request.
			// Where every worker that is there has failed this very request, waiting
			// would not help.
			if n > 1 && len(x.booking.tried) > 0 && x.asked.pool.Alive(&x.d.fleet) && !x.asked.pool.Others(&x.d.fleet, &x.booking.Ask, x.booking.tried, nil) { // it is at none: pump alone writes its charge now
				return s.leave(surface.WorkerFailed(x.asked.pool.Name))
			}
			if n%max(1, int(x.d.step/time.Second)) == 0 && x.answer != nil && !x.beats.heartbeat() {
				x.booking.cancel(causeClient)
			}
		}
	}
}

// eagerly sends the request even to a worker at which it waits behind others: here
// it can wait no longer, or there is no room to.
func (x *exchange) eagerly() bool {
	x.booking.Ask.Eager, x.booking.Ask.AnyLength, x.booking.Ask.Now = true, true, x.d.now()
	verdict, reason := x.d.ledger.Pick(&x.asked.pool.Group, &x.booking.Ask, &x.booking.Charge)
	if verdict != ledger.Picked {
		return false
	}
	x.placed(reason)
	return true
}

// granted books the exchange where there was room.
func (s queueWait) granted(why ledger.Reason) *surface.Failure {
	s.x.booking.awoken()
	s.x.placed(why)
	return nil
}

// leave gives up waiting. A grant that came at the same moment is given back.
func (s queueWait) leave(f *surface.Failure) *surface.Failure {
	s.x.asked.pool.Queue.Remove(s.w)
	select {
	case why := <-s.w.Granted:
		if f != nil {
			return s.granted(why) // just in time after all
		}
		s.x.release(ledger.Neutral)
	default:
	}
	s.x.booking.awoken()
	return f
}

// tooLong is the failure that the client is told when its patience is over.
func (s queueWait) tooLong() *surface.Failure {
	p, d := s.x.asked.pool, s.x.d
	if len(s.x.booking.tried) > 0 {
		return surface.WorkerFailed(p.Name)
	}
	if !p.Alive(&d.fleet) {
		return surface.NoWorker(p.Name)
	}
	return &surface.Failure{Status: 504, Type: "service_unavailable", Code: "queue_timeout", Reason: "wait", RetryAfter: p.Patience(&d.fleet),
		Message: fmt.Sprintf("no worker of pool %q had room within %v", p.Name, s.patience)}
}

// prepare computes the request to the ledger: its size, the parts of its prompt
// that lie in each cache, and the worker that it must go to.
func (x *exchange) prepare() {
	p := x.asked.pool
	x.booking.Ask.Now = x.d.now()
	if x.booking.Ask.Prompt == 0 {
		x.booking.came = x.booking.Ask.Now
		learn := p.Learn(x.asked.model)
		x.booking.Ask.Prompt, x.booking.Ask.Expect = learn.Estimate(x.asked.size(), x.asked.peek.MaxTokens)
		x.booking.Ask.Expect *= max(1, min(x.asked.peek.N, 128))
		if x.asked.kind == surface.JSON || x.asked.kind == surface.Form || x.asked.kind == surface.Pass {
			x.booking.Ask.Expect = 0
		}
		x.booking.digest(&x.asked, x.payload.Body)
		if prefer, spare := p.Trial(); prefer != nil {
			x.booking.Ask.Prefer = prefer
		} else {
			x.booking.Ask.Spare = spare
		}
	}
	x.booking.Ask.Tried = x.booking.tried
	x.booking.Ask.Only = p.Only(x.asked.model)
	x.booking.match(&x.asked)
}

// askPolicy asks the pool's policy plugin, if it has one, for the order of its
// workers. It is outside the ledger's lock: a worker that is full by the time of the choice
// is passed over there.
func (x *exchange) askPolicy() {
	name := x.asked.pool.Plugin.Load()
	if name == nil || *name == "" || x.v.ext == nil {
		return
	}
	workers := *x.asked.pool.Workers.Load()
	candidates := make([]*pb.Candidate, 0, len(workers))
	predicted := x.d.ledger.Predicted(nil, &x.asked.pool.Group, &x.booking.Ask)
	for i, w := range workers {
		if v := x.d.ledger.Account(w.Acct, x.booking.Ask.Now); v.Ready && v.Ejected == "" {
			candidates = append(candidates, candidate(i, v, x.booking.Ask.Hits, predicted))
		}
	}
	req := &pb.Request{Id: x.asked.id, Pool: x.asked.pool.Name, Model: x.asked.model, Session: x.asked.session, Priority: surface.PriorityNames[x.asked.priority],
		PromptTokens: x.booking.Ask.Prompt, ExpectedOutputTokens: x.booking.Ask.Expect, Stream: x.asked.peek.Stream}
	if x.asked.route != nil {
		req.Route = x.asked.route.cfg.Name
	}
	if x.asked.key != nil {
		req.Key = x.asked.key.Name
	}
	x.booking.Ask.Order = x.booking.Ask.Order[:0]
	for _, id := range x.v.ext.Order(*name, req, candidates) {
		for _, w := range workers {
			if w.ID == id {
				x.booking.Ask.Order = append(x.booking.Ask.Order, w.Acct)
			}
		}
	}
}

// candidate is one worker's account as a policy plugin reads it.
func candidate(i int, v ledger.Account, hits []int32, predicted []float64) *pb.Candidate {
	c := &pb.Candidate{
		Worker: v.ID, CapacityTokens: v.Capacity, ChargedTokens: v.KV, ForeignTokens: v.Foreign, PrefillTokens: v.Prefill,
		InFlight: int32(v.InFlight), TokensPerSecond: v.Decode, ReportAgeSeconds: -1,
	}
	if i < len(hits) {
		c.PrefixTokens = int64(hits[i])
	}
	if v.Rate > 0 && i < len(predicted) { // else nothing was learned yet
		c.PredictedTtftSeconds = predicted[i]
	}
	if v.ReportAge >= 0 {
		c.ReportAgeSeconds = float64(v.ReportAge) / 1e9
	}
	return c
}
