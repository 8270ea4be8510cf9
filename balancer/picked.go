package balancer

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/extproc"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/resume"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// picked is a request that a gateway carries: the door chooses and keeps its books, and
// sees its answer only pass.
type picked struct {
	h     *picker
	ctx   context.Context
	head  *extproc.Head
	x     *exchange
	seen  wire.Seen
	began bool // it is among those in flight
	left  func() bool

	light  bool // it was charged with nothing
	sheds  bool // it does not wait
	meter  recorder
	stream *resume.Stream // nil: the answer does not stream
	odd    error          // of the stream: what follows is not read
	buf    []byte         // of an answer whose model's name is changed
	booked int64          // for buf
	long   bool           // it is too long to be changed
	tail   []byte         // the end of an answer that does not stream
}

// Reserve implements extproc.Exchange.
func (p *picked) Reserve(n int64) *extproc.Refusal {
	x := p.x
	var f *surface.Failure
	switch limit := x.v.limits.body; {
	case x.payload.Booked+n > limit:
		f = tooLong(limit)
	case !x.d.book(n):
		f = noMemory()
	default:
		x.payload.Booked += n
		return nil
	}
	return p.turnAway(f)
}

// turnAway refuses a request that is not among those in flight.
func (p *picked) turnAway(f *surface.Failure) *extproc.Refusal {
	x := p.x
	if f.Reason != "" {
		x.d.metrics.Refused("", f.Reason)
		x.d.lobby.Refused(f.Reason)
	}
	x.turnAway(f)
	x.payload.Booked = 0
	return refusal(f, x.asked.path, x.asked.id)
}

// Choose implements extproc.Exchange.
func (p *picked) Choose(body []byte) (*extproc.Choice, *extproc.Refusal) {
	x := p.x
	x.payload.Body = body
	k, f := x.v.admit(p.seen.Authorization, p.seen.Key)
	if f == nil {
		f = p.enter(k, len(body) == 0)
	}
	if f != nil {
		return nil, p.turnAway(f)
	}
	p.began = true
	p.left = context.AfterFunc(p.ctx, func() { x.booking.cancel(causeClient) })
	f = p.place()
	if x.booking.over() {
		f, x.record.outcome = x.parted("waiting")
		x.record.status = 499
		if f == nil {
			return nil, nil
		}
		return nil, refusal(f, x.asked.path, x.asked.id)
	}
	if f != nil {
		x.refused(f)
		r := refusal(f, x.asked.path, x.asked.id)
		x.record.status = r.Status
		return nil, r
	}
	return p.choice(), nil
}

// enter reads what the request says, and enters it among those in flight.
func (p *picked) enter(k *keyring.Key, bodiless bool) *surface.Failure {
	x, a := p.x, &p.x.asked
	if a.within == nil && p.h.o.Pool != "" {
		return surface.NoWorker(p.h.o.Pool)
	}
	kind := surface.KindOf(a.path)
	switch kind {
	case surface.Chat, surface.Text, surface.Generation, surface.JSON, surface.Form:
		if a.kind = kind; bodiless {
			a.kind = surface.Pass
		}
	case surface.Stored:
		a.kind = kind
	default:
		a.kind = surface.Pass
	}
	x.reads = p.unread
	if f := x.enter(&p.seen, k); f != nil {
		return f
	}
	if a.kind == surface.Pass && bodiless && kind < surface.JSON && kind > surface.None && a.method == "POST" {
		a.kind = kind // its body goes to the worker unseen
	} else if a.kind == surface.Pass && bodiless {
		p.light = true
	}
	if to := p.head.Rewrite; to != "" {
		a.model, a.renamed = to, true
		a.target = x.v.models[to]
	}
	p.sheds = p.prioritise()
	return nil
}

// prioritise gives the request the class of its objective, and reports whether it is one
// that is dropped where there is no room. What a key bounds, no objective raises.
func (p *picked) prioritise() (sheds bool) {
	a := &p.x.asked
	for _, o := range p.x.v.set.Door.Objectives {
		if o.Name != p.head.Objective {
			continue
		}
		class := surface.Normal
		switch {
		case o.Priority > 0:
			class = surface.High
		case o.Priority < 0:
			class = surface.Low
		}
		if a.key != nil {
			class = max(class, a.priority)
		}
		a.priority = class
		return o.Priority < 0
	}
	return false
}

// unread finds the pool of a request whose body says nothing, or is not seen.
func (p *picked) unread(seen *wire.Seen, _ *keyring.Key) *surface.Failure {
	x, a := p.x, &p.x.asked
	if a.within == nil {
		if len(x.v.pools) == 0 {
			return surface.NoWorker("")
		}
		a.within = x.v.pools[0]
		for _, pool := range x.v.pools {
			if pool.Alive(&x.d.fleet) {
				a.within = pool
				break
			}
		}
	}
	a.findWithin(&x.d.fleet, x.v, "", nil, "")
	for _, f := range p.head.Fields {
		if n, err := strconv.ParseInt(f[1], 10, 64); f[0] == "content-length" && err == nil {
			a.peek.PromptBytes = int(min(max(n, 0), x.v.limits.body))
		}
	}
	return nil
}

// place finds a worker, and books the request there.
func (p *picked) place() *surface.Failure {
	x := p.x
	if p.head.Narrowed {
		if x.booking.Ask.Among = p.h.ready(x.asked.pool, p.head.Subset); len(x.booking.Ask.Among) == 0 {
			return surface.NoWorker(x.asked.pool.Name)
		}
	}
	switch {
	case p.light:
		return p.placeAny()
	case p.sheds:
		return p.placeNow()
	}
	return x.place()
}

// placeAny takes any worker that is ready, and charges it with nothing.
func (p *picked) placeAny() *surface.Failure {
	x := p.x
	ask := &x.booking.Ask
	ask.Prompt, ask.Force, ask.Eager, ask.AnyLength, ask.Now = 1, true, true, true, x.d.now()
	verdict, reason := x.booking.Pick(x.d.ledger, &x.asked.pool.Group)
	if verdict != ledger.Picked {
		return surface.NoWorker(x.asked.pool.Name)
	}
	x.placed(reason)
	x.release(ledger.Neutral)
	return nil
}

// placeNow takes a worker with room, and waits for none.
func (p *picked) placeNow() *surface.Failure {
	x, pool := p.x, p.x.asked.pool
	x.prepare()
	x.askPolicy()
	if pool.Queue.Len() == 0 {
		verdict, reason := x.booking.Pick(x.d.ledger, &pool.Group)
		if verdict == ledger.Picked {
			x.placed(reason)
			return nil
		}
	}
	if !pool.Alive(&x.d.fleet) {
		return surface.NoWorker(pool.Name)
	}
	return &surface.Failure{Status: 429, Type: "rate_limit_error", Code: "saturated", Reason: "full", RetryAfter: pool.Patience(&x.d.fleet),
		Message: "the request's objective has a priority below 0, and pool \"" + pool.Name + "\" has no room now"}
}

// choice tells the gateway where the request goes.
func (p *picked) choice() *extproc.Choice {
	x := p.x
	w := x.booking.worker.Load()
	x.booking.own = w.Own.Load()
	x.record.state.Store(phaseSent)
	x.record.overhead = x.d.now() - x.asked.start - x.record.queued
	c := &extproc.Choice{Endpoints: p.h.endpoints(x.asked.pool, w, x.d.now()), Told: x.booking.awake()}
	if c.Told == nil {
		c.Told = gone
	}
	c.Set, c.Remove = gatewayFields(x, w)
	if x.payload.Body != nil {
		if cuts := x.asked.splices(nil, x.payload.Body, nil); len(cuts) > 0 {
			c.Body = appendSpliced(nil, x.payload.Body, cuts)
		}
	}
	return c
}

// gone is what a request was told that ended as it was placed.
var gone = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// GaveBack implements extproc.Exchange.
func (p *picked) GaveBack() {
	p.x.payload.Body = nil
	p.x.payload.GiveBack(&p.x.d.memory)
}

// Answered implements extproc.Exchange.
func (p *picked) Answered(a *extproc.Answer) (set [][2]string, rewrites bool) {
	x := p.x
	p.follow(a.Served)
	x.record.status = a.Status
	x.record.state.Store(phaseStreaming)
	media, _, _ := strings.Cut(a.Type, ";")
	if !p.light && a.Status == 200 && strings.TrimSpace(media) == "text/event-stream" {
		p.stream = &resume.Stream{}
		p.stream.Open(resume.Asked{API: apiOf(&x.asked), Peek: &x.asked.peek, Model: x.asked.model, Open: true})
		p.stream.Feed(x.booking.own)
	}
	set = [][2]string{{"x-roundhouse-worker", x.record.worker}, {"x-roundhouse-queue-ms", strconv.FormatInt(x.record.queued/1e6, 10)}}
	return set, x.asked.keepsName() && a.Status < 300
}

// follow moves the charge to the worker that really answers, where that is another than
// the chosen one.
func (p *picked) follow(served string) {
	x := p.x
	if w := x.booking.worker.Load(); served == "" || p.light || addressed(w.Up.Load().Addr, []string{served}) {
		return
	}
	x.d.log.Warn("the gateway sent a request elsewhere than it was told", "request", x.asked.id, "chosen", x.record.worker, "served", served)
	x.d.metrics.Retried(x.asked.pool.Name, "gateway")
	x.booking.depart()
	x.release(ledger.Neutral)
	i := slices.IndexFunc(*x.asked.pool.Workers.Load(), func(w *fleet.Worker) bool { return addressed(w.Up.Load().Addr, []string{served}) })
	if i < 0 {
		p.light = true // it is no worker of ours
		return
	}
	w := (*x.asked.pool.Workers.Load())[i]
	ask := &x.booking.Ask
	ask.Among, ask.Only, ask.Tried, ask.Prefer, ask.Order = nil, nil, nil, w.Acct, nil
	ask.Hits, ask.Looks = nil, nil
	ask.Force, ask.Eager, ask.AnyLength, ask.Now = true, true, true, x.d.now()
	if verdict, reason := x.d.ledger.Pick(&x.asked.pool.Group, ask, &x.booking.Charge); verdict == ledger.Picked {
		x.placed(reason)
		x.booking.own = w.Own.Load()
		return
	}
	p.light = true // it answers, though it is on its way out
	x.record.worker = w.ID
}

// Piece implements extproc.Exchange.
func (p *picked) Piece(b []byte, end bool) []byte {
	x := p.x
	if p.tail == nil && p.stream == nil && !p.light {
		x.record.began(x.record.status, x.d.now())
		x.d.responses.Keep(x.asked.path, x.asked.owner, b, x.booking.Charge.Try())
	}
	if p.stream != nil && !p.light && p.odd == nil {
		o := conn.LendOut()
		var got resume.Got
		got, p.odd = p.stream.Take(&o.Out, b)
		o.Free()
		p.meter.take(&got)
		if got.Events > 0 {
			p.meter.relayed(got.Events)
		}
	}
	if p.stream == nil {
		if p.tail = append(p.tail, b[max(0, len(b)-usageWithin):]...); len(p.tail) > 2*usageWithin {
			p.tail = append(p.tail[:0], p.tail[len(p.tail)-usageWithin:]...)
		}
	}
	if !x.asked.keepsName() {
		return b
	}
	return p.renamed(b, end)
}

// renamed is what the client gets for a piece of an answer in which the model has the
// name that the client knows: whole events, or a whole answer.
func (p *picked) renamed(b []byte, end bool) (out []byte) {
	x := p.x
	if p.long {
		return b
	}
	more := int64(len(b))
	if int64(len(p.buf))+more > mostBuffered || !x.d.book(more) {
		p.long = true
		return append(p.buf, b...)
	}
	p.booked += more
	p.buf = append(p.buf, b...)
	for p.stream != nil {
		n := wire.NextEvent(p.buf)
		if n == 0 {
			break
		}
		out = append(out, resume.Rename(slices.Clone(p.buf[:n]), x.asked.model, x.asked.peek.Model)...)
		p.buf = p.buf[n:]
	}
	if end {
		out = append(out, resume.Rename(p.buf, x.asked.model, x.asked.peek.Model)...)
		p.buf = nil
	}
	free := p.booked - int64(len(p.buf))
	x.d.memory.Give(free)
	p.booked -= free
	return out
}

// Part implements extproc.Exchange.
func (p *picked) Part() *extproc.Refusal {
	if cause(p.x.booking.why.Load()) != causeOperator {
		return nil // a client that has left reads nothing, and a door that ends lets the answer pass
	}
	f, _ := p.x.parted("streaming")
	return refusal(f, p.x.asked.path, p.x.asked.id)
}

// End implements extproc.Exchange.
func (p *picked) End(how extproc.Ending) {
	x := p.x
	if p.left != nil {
		p.left()
	}
	x.d.memory.Give(p.booked)
	p.booked, p.buf = 0, nil
	if !p.began {
		x.payload.Body = nil
		x.payload.GiveBack(&x.d.memory) // its client left before it was whole
		return
	}
	switch {
	case how == extproc.Refused:
	case how == extproc.Unseen && !x.booking.over():
		p.endUnseen()
		return
	case how == extproc.Whole || p.stream != nil && p.stream.Done():
		p.endWhole()
	default:
		p.endBroken()
	}
	x.finish()
}

// endWhole ends the books of a request whose answer came whole.
func (p *picked) endWhole() {
	x := p.x
	x.record.whole = x.d.now()
	switch {
	case p.light:
	case p.odd != nil:
		if x.record.outcome = "failed"; errors.Is(p.odd, resume.ErrEvent) {
			x.release(ledger.Neutral)
			return
		}
		x.release(ledger.Failed)
	case p.stream != nil:
		p.meter.whole()
		x.release(x.booking.judged(x.d.ledger, x.record.status, x.d.now()))
	default:
		x.settle(x.record.status, p.tail)
	}
}

// endBroken ends the books of a request that nobody waits for any more, or whose answer
// the picker sees no more of.
func (p *picked) endBroken() {
	x := p.x
	if !x.booking.over() {
		x.booking.cancel(causeClient)
	}
	if cause(x.booking.why.Load()) == causeStop && x.booking.worker.Load() != nil {
		x.release(ledger.Neutral)
		return
	}
	x.abandon()
	phase := "waiting"
	if x.record.status != 0 {
		phase = "streaming"
	}
	_, x.record.outcome = x.parted(phase)
	x.record.status = 499
}

// endUnseen keeps the books open for as long as an answer should take that is not seen.
func (p *picked) endUnseen() {
	x := p.x
	x.d.live.delist(x)
	x.record.status = 200
	end := func() {
		x.release(ledger.Neutral)
		x.finish()
	}
	if p.light {
		end()
		return
	}
	time.AfterFunc(unseenFor(x), end)
}

// Begin implements extproc.Host.
func (h *picker) Begin(ctx context.Context, head *extproc.Head) extproc.Exchange {
	v := h.d.current()
	p := &picked{h: h, ctx: ctx, head: head}
	for _, f := range head.Fields {
		p.seen.Take([]byte(f[0]), []byte(f[1]))
	}
	x := h.d.newExchange(v, nil, &p.seen)
	p.x, p.meter = x, recorder{x: x}
	a := &x.asked
	a.client = gatewaysClient(v.trusted.proxies, p.seen.Forwarded)
	a.method, a.path, a.query, a.flow = head.Method, head.Path, head.Query, head.Fairness
	if a.within = v.byName[h.o.Pool]; h.o.Pool == "" && len(v.pools) == 1 {
		a.within = v.pools[0]
	}
	return p
}
