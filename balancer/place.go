package balancer

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"github.com/cespare/xxhash/v2"

	"roundhouse/balancer/decision"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wait"
	"roundhouse/worker/api"
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

// placed enters what a choice decided. The worker may have left the pool since.
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
		x.remember()
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
	f := x.stand(w, wake, patience)
	x.record.queued += d.now() - began
	x.record.state.CompareAndSwap(phaseParked, phaseStreaming)
	return f
}

// turn is where the request waits.
func (x *exchange) turn() wait.Place {
	at := wait.Place{Class: x.asked.priority, Weight: 1, Turn: x.d.ledger.Turn(&x.asked.pool.Group, x.booking.Ask.Prompt, x.d.now())}
	if x.resuming() {
		at.Turn = math.Inf(-1) // someone is in the middle of its answer
	}
	at.Key = x.asked.flow
	if k := x.asked.key; k != nil {
		at.Key, at.Weight = k.Name, float64(max(1, k.Cfg.Weight))
	}
	return at
}

// stand waits for a grant. A stream that is parked sends its heartbeats
// meanwhile.
func (x *exchange) stand(w *wait.Waiter, wake chan struct{}, patience time.Duration) *surface.Failure {
	began, deadline := x.d.now(), time.NewTimer(patience)
	defer deadline.Stop()
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	for n := 1; ; n++ {
		select {
		case why := <-w.Granted:
			return x.granted(why)
		case <-wake:
			return x.leave(w, nil)
		case <-deadline.C:
			if x.d.now()-began < x.asked.pool.Gap.Load() { // its turn goes on, for minutes
				deadline.Reset(time.Second)
				n--
				continue
			}
			if f := x.leave(w, x.waitedTooLong(patience)); f == nil || !x.eagerly() {
				return f
			}
			return nil
		case <-beat.C:
			// A worker that died is known to be gone within a second; one that
			// is still there then is alive, and does not want this request.
			// Where every worker that is there has failed this very request, waiting
			// would not help.
			if n > 1 && len(x.booking.tried) > 0 && x.asked.pool.Alive(&x.d.fleet) && !x.asked.pool.Others(&x.d.fleet, x.booking.tried, nil) { // it is at none: pump alone writes its charge now
				return x.leave(w, surface.WorkerFailed(x.asked.pool.Name))
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

func (x *exchange) granted(why ledger.Reason) *surface.Failure {
	x.booking.awoken()
	x.placed(why)
	return nil
}

// leave gives up waiting. A grant that came at the same moment is given back.
func (x *exchange) leave(w *wait.Waiter, f *surface.Failure) *surface.Failure {
	x.asked.pool.Queue.Remove(w)
	select {
	case why := <-w.Granted:
		if f != nil {
			return x.granted(why) // just in time after all
		}
		x.release(ledger.Neutral)
	default:
	}
	x.booking.awoken()
	return f
}

func (x *exchange) waitedTooLong(patience time.Duration) *surface.Failure {
	p, d := x.asked.pool, x.d
	if len(x.booking.tried) > 0 {
		return surface.WorkerFailed(p.Name)
	}
	if !p.Alive(&d.fleet) {
		return surface.NoWorker(p.Name)
	}
	return &surface.Failure{Status: 504, Type: "service_unavailable", Code: "queue_timeout", Reason: "wait", RetryAfter: p.Patience(&d.fleet),
		Message: fmt.Sprintf("no worker of pool %q had room within %v", p.Name, patience)}
}

// prepare computes what the exchange asks of the ledger: its size, what of its
// prompt lies in whose cache, and which worker it must go to.
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
	x.booking.match(&x.asked)
}

// digest hashes the prompt's chunks, before any lock.
func (b *booking) digest(a *asked, body []byte) {
	if a.promptLen() < ledger.ChunkBytes {
		return
	}
	salt := xxhash.Sum64String(a.model)
	if a.peek.CacheSalt.Set() {
		salt ^= xxhash.Sum64(a.peek.CacheSalt.Of(body)) * 31
	}
	own := salt
	if a.peek.Extra.Set() {
		salt ^= xxhash.Sum64(a.peek.Extra.Of(body)) * 17
	}
	if a.peek.System.Set() {
		salt ^= xxhash.Sum64(a.peek.System.Of(body)) * 13
	}
	prompt := a.peek.Prompt.Of(body)
	if units := b.items.take(&a.peek); units > 0 {
		b.units = float64(a.peek.PromptBytes)/ledger.ChunkBytes + float64(units)
		b.chunks, b.items.digests = ledger.DigestsAround(b.chunks[:0], b.items.digests[:0], salt, own, prompt, b.items.places)
		return
	}
	b.units = float64(max(a.peek.PromptBytes, a.promptLen())) / ledger.ChunkBytes
	b.chunks = ledger.Digests(b.chunks[:0], salt, prompt)
}

// match looks up what of the prompt each worker has seen.
func (b *booking) match(a *asked) {
	b.Ask.Hits, b.Ask.Looks = nil, nil
	t := a.pool.Prefix.Load()
	if len(b.chunks) == 0 || t == nil {
		return
	}
	workers := *a.pool.Workers.Load()
	lent := slotHits.Get().(*[]int32)
	defer slotHits.Put(lent)
	slots := 0
	for _, w := range workers {
		slots = max(slots, w.Slot+1)
	}
	if cap(*lent) < slots {
		*lent = make([]int32, slots)
	}
	bySlot := (*lent)[:slots]
	t.Match(b.chunks, bySlot)
	if cap(b.hits) < len(workers) {
		b.hits = make([]int32, len(workers))
	}
	b.hits = b.hits[:len(workers)]
	per := float64(b.Ask.Prompt) / b.units
	for i, w := range workers {
		n := int(bySlot[w.Slot])
		units := ledger.Units(n)
		if len(b.items.digests) > 0 {
			units = ledger.UnitsOf(b.chunks[:n])
		}
		b.hits[i] = int32(float64(units) * per)
	}
	b.Ask.Hits = b.hits
	if len(b.items.digests) > 0 {
		b.Ask.Looks = b.items.match(t, workers, bySlot, per)
	}
	b.Ask.Chunks, b.Ask.ChunkTokens = b.chunks, per
}

// remember notes that the worker has the prompt in its cache now.
func (x *exchange) remember() {
	b := &x.booking
	x.asked.pool.Remember(b.worker.Load(), b.chunks, b.Ask.ChunkTokens)
	x.asked.pool.Remember(b.worker.Load(), b.items.digests, 0)
}

// computed enters that the worker has computed the prompt.
func (x *exchange) computed() {
	if x.booking.own {
		x.remember()
	} else { // it was remembered when it was sent
		x.booking.worker.Load().Hits.Came(x.booking.Charge.Prompt(), x.booking.Charge.Believed())
	}
}

// mostChunks is how many digests a request carries to its worker.
const mostChunks = 1024

// chunkField appends the digests of the prompt's chunks, by which a worker of
// ours names what leaves its cache.
func (k *booking) chunkField(b []byte) []byte {
	if len(k.chunks) == 0 {
		return b
	}
	b = append(b, "\r\n"+api.HeaderChunks+": "...)
	for i, d := range k.chunks[:min(len(k.chunks), mostChunks)] {
		if i > 0 {
			b = append(b, ',')
		}
		var raw [8]byte
		binary.BigEndian.PutUint64(raw[:], d)
		b = hex.AppendEncode(b, raw[:])
	}
	return b
}
