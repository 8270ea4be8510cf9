package balancer

import (
	"errors"
	"sync"
	"sync/atomic"

	"encoding/binary"
	"encoding/hex"

	"github.com/cespare/xxhash/v2"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/wait"
	"roundhouse/balancer/wire"
	"roundhouse/worker/api"
)

// cause says why an exchange was told to stop.
type cause int32

const (
	causeNone     cause = iota
	causeClient         // the client has left
	causeOperator       // DELETE /api/requests/{id}
	causeDrain          // its worker's drain is over: go on elsewhere
	causeStop           // the door ends
	causeHung           // its worker makes no progress: go on elsewhere
)

// errGone says that nobody waits for the answer any more.
var errGone = errors.New("the request was cancelled")

// booking is the hold of a request on a worker: its charge, the connection, and
// the tries before. The exchange's goroutine writes it; others read worker
// and call cancel and moveOn.
type booking struct {
	wait.Claim
	pinned   bool // bound, until its stream has begun
	own      bool // its present worker is one of ours
	hits     []int32
	chunks   []uint64 // prompt-chunk digests
	units    float64  // how many times ledger.ChunkBytes the prompt is
	items    items
	tried    []ledger.Try
	attempts int          // sent again for an answer of 429 or 5xx
	erred    []ledger.Try // that answered 5xx: who is to blame, the next answer says
	deaths   int          // of workers in a row that had it, without a token between
	reason   ledger.Reason
	came     int64 // when a worker was looked for, the first time
	sentAt   int64 // to the worker, the last time
	advance  int64 // tokens charged to the key before the answer has said

	mu     sync.Mutex
	up     *conn.Conn
	wake   chan struct{}                // closed by cancel while the exchange waits
	worker atomic.Pointer[fleet.Worker] // the last one
	there  bool                         // it is booked at worker
	why    atomic.Int32
}

// cancel tells an exchange that nobody waits for it any more.
func (b *booking) cancel(why cause) {
	b.why.Store(int32(why))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.up != nil {
		b.up.Conn.Close()
	}
	if b.wake != nil {
		close(b.wake)
		b.wake = nil
	}
}

// moveOn tells an exchange that is at a worker to go on elsewhere. It does
// nothing where the exchange waits or is at another worker by now: a failure of
// its previous worker must not move it.
func (b *booking) moveOn(from *fleet.Worker, why cause) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.there && b.worker.Load() == from && b.why.CompareAndSwap(0, int32(why)) && b.up != nil {
		b.up.Conn.Close()
	}
}

// arrive notes the worker that the exchange is booked at.
func (b *booking) arrive(w *fleet.Worker) {
	b.mu.Lock()
	b.worker.Store(w)
	b.there = true
	b.mu.Unlock()
}

// depart notes that the exchange is booked at no worker, and returns the
// connection to the last one. An order to move on is over with it.
func (b *booking) depart() (c *conn.Conn) {
	b.mu.Lock()
	c, b.up, b.there = b.up, nil, false
	b.mu.Unlock()
	b.why.CompareAndSwap(int32(causeDrain), 0)
	b.why.CompareAndSwap(int32(causeHung), 0)
	return c
}

// over reports whether nobody waits for the answer any more.
func (b *booking) over() bool {
	switch cause(b.why.Load()) {
	case causeClient, causeOperator, causeStop:
		return true
	}
	return false
}

// blame returns the outcome of a failed attempt for its worker, and the word by which
// it is counted: a draining worker is not to blame for requests that it must give up.
func (b *booking) blame(word string) (ledger.Outcome, string) {
	switch cause(b.why.Load()) {
	case causeDrain:
		return ledger.Neutral, "drain"
	case causeHung:
		return ledger.Failed, "hung"
	}
	return ledger.Failed, word
}

// hold names the connection that cancel must close.
func (b *booking) hold(c *conn.Conn) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up = c
	if c != nil && b.why.Load() != 0 {
		return errGone
	}
	return nil
}

// connection is the one to the present worker; nil: there is none.
func (b *booking) connection() *conn.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.up
}

// letGo is connection, which the booking then holds no longer.
func (b *booking) letGo() (c *conn.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, b.up = b.up, nil
	return c
}

// drop closes the connection to the worker, which tells it to stop.
func (b *booking) drop() {
	if c := b.letGo(); c != nil {
		c.Close()
	}
}

// keep puts the connection back for the next request.
func (b *booking) keep(now int64) {
	if c := b.letGo(); c != nil {
		c.Put(now)
	}
}

// awake makes the channel that cancel closes; nil where it is too late.
func (b *booking) awake() chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over() {
		return nil
	}
	b.wake = make(chan struct{})
	return b.wake
}

// awoken notes that the wait is over.
func (b *booking) awoken() {
	b.mu.Lock()
	b.wake = nil
	b.mu.Unlock()
}

// unpin lets a stream that has begun go on at any worker.
func (b *booking) unpin() {
	if b.pinned {
		b.Ask.Prefer, b.Bound, b.pinned = nil, false, false
	}
}

// items are the pictures and sounds of a prompt. A worker that has seen one has
// its rows, whatever text it stood behind.
type items struct {
	places  []ledger.Item
	digests []uint64
	looks   []int32 // as Ask has them
}

// The assumed size of an item whose worker has not yet told it. It must not be
// learned: the doors of a fleet are to make the same digests.
const (
	itemPixels = 28 * 28 // of a picture that are a token
	itemTokens = 512     // of an item without a known size
)

// mostLooked is how many items of a prompt are looked up; the first are.
const mostLooked = 64

// take notes the items that stand in the prompt, and returns how many times
// ChunkBytes their tokens are.
func (it *items) take(p *wire.Peek) (units int) {
	it.places = it.places[:0]
	for _, m := range p.Items {
		if m.From < p.Prompt.From || m.To > p.Prompt.To {
			continue
		}
		place := ledger.Item{From: m.From - p.Prompt.From, To: m.To - p.Prompt.From, Tokens: itemTokens}
		if m.Pixels > 0 {
			place.Tokens = max(m.Pixels/itemPixels, 1)
		}
		units += place.Units()
		it.places = append(it.places, place)
	}
	return units
}

// match counts for each worker the tokens of items that it has not seen, of which per
// are ledger.ChunkBytes. bySlot is room for a number a slot.
func (it *items) match(t *ledger.PrefixTable, workers []*fleet.Worker, bySlot []int32, per float64) []int32 {
	if cap(it.looks) < len(workers) {
		it.looks = make([]int32, len(workers))
	}
	it.looks = it.looks[:len(workers)]
	clear(it.looks)
	for n := range it.digests[:min(len(it.digests), mostLooked)] {
		t.Match(it.digests[n:n+1], bySlot)
		tokens := int32(float64(it.places[n].Units()) * per)
		for i, w := range workers {
			if bySlot[w.Slot] == 0 {
				it.looks[i] += tokens
			}
		}
	}
	return it.looks
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

// match looks up the parts of the prompt that each worker has seen.
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
func (b *booking) remember(p *fleet.Pool) {
	p.Remember(b.worker.Load(), b.chunks, b.Ask.ChunkTokens)
	p.Remember(b.worker.Load(), b.items.digests, 0)
}

// computed enters that the worker has computed the prompt.
func (b *booking) computed(p *fleet.Pool) {
	if b.own {
		b.remember(p)
	} else { // it was remembered when it was sent
		b.worker.Load().Hits.Came(b.Charge.Prompt(), b.Charge.Believed())
	}
}

// mostChunks is how many digests a request carries to its worker.
const mostChunks = 1024

// chunkField appends the digests of the prompt's chunks, by which a worker of
// ours names the chunks that leave its cache.
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

// slotHits are lent for looking prompts up.
var slotHits = sync.Pool{New: func() any { return new([]int32) }}

// judged is the verdict of an answer on its worker. An error of the worker's own
// (5xx) blames the worker only if another worker then served the request: a request
// that fails everywhere is itself to blame.
func (b *booking) judged(l *ledger.Ledger, status int, now int64) ledger.Outcome {
	erred := b.erred
	b.erred = nil
	switch {
	case status == 429 || status == 503:
		return ledger.Busy
	case status >= 500 && len(erred) > 0:
		return ledger.Neutral
	case status >= 500:
		return ledger.Erred
	case status >= 400:
		return ledger.Neutral
	}
	for _, t := range erred {
		l.Blame(t, now)
	}
	return ledger.Served
}
