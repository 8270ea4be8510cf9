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
		if x.asked.kind == kindJSON || x.asked.kind == kindForm {
			x.booking.ask.Expect = 0
		}
		x.digest()
		x.preferCanary()
	}
	x.booking.ask.Tried = x.booking.tried
	x.match()
}

// digest hashes the prompt's chunks, before any lock.
func (x *exchange) digest() {
	if x.asked.promptLen() < ledger.ChunkBytes {
		return
	}
	salt := xxhash.Sum64String(x.asked.model)
	if x.asked.peek.CacheSalt.Set() {
		salt ^= xxhash.Sum64(x.asked.peek.CacheSalt.Of(x.payload.body)) * 31
	}
	if x.asked.peek.Extra.Set() {
		salt ^= xxhash.Sum64(x.asked.peek.Extra.Of(x.payload.body)) * 17
	}
	if x.asked.peek.System.Set() {
		salt ^= xxhash.Sum64(x.asked.peek.System.Of(x.payload.body)) * 13
	}
	x.booking.chunks = ledger.Digests(x.booking.chunks[:0], salt, x.asked.peek.Prompt.Of(x.payload.body))
}

// match looks up what of the prompt each worker has seen.
func (x *exchange) match() {
	x.booking.ask.Hits = nil
	t := x.asked.pool.prefix.Load()
	if len(x.booking.chunks) == 0 || t == nil {
		return
	}
	workers := *x.asked.pool.workers.Load()
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
	t.Match(x.booking.chunks, bySlot)
	if cap(x.booking.hits) < len(workers) {
		x.booking.hits = make([]int32, len(workers))
	}
	x.booking.hits = x.booking.hits[:len(workers)]
	per := float64(x.booking.ask.Prompt) / float64(max(1, x.asked.peek.PromptBytes, x.asked.promptLen())) * ledger.ChunkBytes
	for i, w := range workers {
		x.booking.hits[i] = int32(float64(ledger.Units(int(bySlot[w.slot]))) * per)
	}
	x.booking.ask.Hits = x.booking.hits
	x.booking.ask.Chunks, x.booking.ask.ChunkTokens = x.booking.chunks, per
}

// computed enters that the worker has computed the prompt.
func (x *exchange) computed() {
	if x.booking.own {
		x.remember()
	} else { // it was remembered when it was sent
		x.booking.worker.Load().hits.came(x.booking.charge.Prompt(), x.booking.charge.Believed())
	}
}

// remember notes that the worker now has the prompt in its cache. What an answer
// has used until its end is remembered once more then, as the last that was used.
func (x *exchange) remember() {
	t := x.asked.pool.prefix.Load()
	if t == nil || len(x.booking.chunks) == 0 {
		return
	}
	w := x.booking.worker.Load()
	// A worker can cache what its KV holds and no more.
	if per := x.booking.ask.ChunkTokens; per > 0 {
		most, now := int64(float64(w.capacity.Load())/per), w.believes.Load()
		if d := most - now; d*8 > now || d*8 < -now {
			w.believes.Store(most)
			t.Limit(w.slot, int(most))
		}
	}
	t.Add(w.slot, x.booking.chunks)
	x.asked.pool.tellCached(w, x.booking.chunks)
}

// slotHits are lent for looking prompts up.
var slotHits = sync.Pool{New: func() any { return new([]int32) }}

// mostChunks is how many digests a request carries to its worker.
const mostChunks = 1024

// chunkField appends the digests of the prompt's chunks, by which a worker of
// ours names what leaves its cache.
func (x *exchange) chunkField(b []byte) []byte {
	if len(x.booking.chunks) == 0 {
		return b
	}
	b = append(b, "\r\n"+api.HeaderChunks+": "...)
	for i, d := range x.booking.chunks[:min(len(x.booking.chunks), mostChunks)] {
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
func (x *exchange) preferCanary() {
	c := x.asked.pool.canary.Load()
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.debt += c.share; c.debt >= 1 {
		c.debt--
		x.booking.ask.Prefer = c.worker.acct
	} else {
		x.booking.ask.Spare = c.worker.acct
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
