package balancer

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"sync"

	"github.com/cespare/xxhash/v2"

	"roundhouse/balancer/ledger"
	"roundhouse/worker/api"
)

// prepare computes what the exchange asks of the ledger: its size, what of its
// prompt lies in whose cache, and which worker it must go to.
func (x *exchange) prepare() {
	p := x.asked.pool
	x.booking.ask.Now = x.d.now()
	if x.booking.ask.Prompt == 0 {
		x.booking.came = x.booking.ask.Now
		learn := p.learn(x.asked.model)
		x.booking.ask.Prompt, x.booking.ask.Expect = learn.Estimate(x.asked.size(), x.asked.peek.MaxTokens)
		x.booking.ask.Expect *= max(1, min(x.asked.peek.N, 128))
		if x.asked.kind == kindJSON || x.asked.kind == kindForm || x.asked.kind == kindPass {
			x.booking.ask.Expect = 0
		}
		x.booking.digest(&x.asked, x.payload.body)
		x.booking.preferCanary(p.canary.Load())
	}
	x.booking.ask.Tried = x.booking.tried
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
	if a.peek.Extra.Set() {
		salt ^= xxhash.Sum64(a.peek.Extra.Of(body)) * 17
	}
	if a.peek.System.Set() {
		salt ^= xxhash.Sum64(a.peek.System.Of(body)) * 13
	}
	b.chunks = ledger.Digests(b.chunks[:0], salt, a.peek.Prompt.Of(body))
}

// match looks up what of the prompt each worker has seen.
func (b *booking) match(a *asked) {
	b.ask.Hits = nil
	t := a.pool.prefix.Load()
	if len(b.chunks) == 0 || t == nil {
		return
	}
	workers := *a.pool.workers.Load()
	lent := slotHits.Get().(*[]int32)
	defer slotHits.Put(lent)
	slots := 0
	for _, w := range workers {
		slots = max(slots, w.slot+1)
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
	per := float64(b.ask.Prompt) / float64(max(1, a.peek.PromptBytes, a.promptLen())) * ledger.ChunkBytes
	for i, w := range workers {
		b.hits[i] = int32(float64(ledger.Units(int(bySlot[w.slot]))) * per)
	}
	b.ask.Hits = b.hits
	b.ask.Chunks, b.ask.ChunkTokens = b.chunks, per
}

// computed enters that the worker has computed the prompt.
func (x *exchange) computed() {
	if x.booking.own {
		x.asked.pool.remember(&x.booking)
	} else { // it was remembered when it was sent
		x.booking.worker.Load().hits.came(x.booking.charge.Prompt(), x.booking.charge.Believed())
	}
}

// remember notes that a worker now has the prompt of a booking in its cache. What
// an answer has used until its end is remembered once more then, as the last that
// was used.
func (p *pool) remember(b *booking) {
	t := p.prefix.Load()
	if t == nil || len(b.chunks) == 0 {
		return
	}
	w := b.worker.Load()
	// A worker can cache what its KV holds and no more.
	if per := b.ask.ChunkTokens; per > 0 {
		most, now := int64(float64(w.capacity.Load())/per), w.believes.Load()
		if d := most - now; d*8 > now || d*8 < -now {
			w.believes.Store(most)
			t.Limit(w.slot, int(most))
		}
	}
	t.Add(w.slot, b.chunks)
	p.tellCached(w, b.chunks)
}

// slotHits are lent for looking prompts up.
var slotHits = sync.Pool{New: func() any { return new([]int32) }}

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

// preferCanary gives a worker under trial its exact share.
func (b *booking) preferCanary(c *canary) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.debt += c.share; c.debt >= 1 {
		c.debt--
		b.ask.Prefer = c.worker.acct
	} else {
		b.ask.Spare = c.worker.acct
	}
}

// parseDigests reads the digests that a worker reports, as hexadecimal.
func parseDigests(list []string) []uint64 {
	out := make([]uint64, 0, len(list))
	for _, s := range list {
		if v, err := strconv.ParseUint(s, 16, 64); err == nil {
			out = append(out, v)
		}
	}
	return out
}
