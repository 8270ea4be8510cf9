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
	p := x.pool
	x.ask.Now = x.d.now()
	if x.ask.Prompt == 0 {
		x.came = x.ask.Now
		learn := p.learn(x.model)
		x.ask.Prompt, x.ask.Expect = learn.Estimate(x.peek.PromptBytes+x.peek.Extra.To-x.peek.Extra.From, x.peek.MaxTokens)
		x.ask.Expect *= max(1, min(x.peek.N, 128))
		if x.kind == kindJSON || x.kind == kindForm {
			x.ask.Expect = 0
		}
		x.digest()
		x.preferCanary()
	}
	x.ask.Tried = x.tried
	x.match()
}

// digest hashes the prompt's chunks, before any lock.
func (x *exchange) digest() {
	if !x.peek.Prompt.Set() || x.peek.PromptBytes < ledger.ChunkBytes {
		return
	}
	salt := xxhash.Sum64String(x.model)
	if x.peek.CacheSalt.Set() {
		salt ^= xxhash.Sum64(x.peek.CacheSalt.Of(x.body)) * 31
	}
	if x.peek.Extra.Set() {
		salt ^= xxhash.Sum64(x.peek.Extra.Of(x.body)) * 17
	}
	x.chunks = ledger.Digests(x.chunks[:0], salt, x.peek.Prompt.Of(x.body))
}

// match looks up what of the prompt each worker has seen.
func (x *exchange) match() {
	x.ask.Hits = nil
	t := x.pool.prefix.Load()
	if len(x.chunks) == 0 || t == nil {
		return
	}
	workers := *x.pool.workers.Load()
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
	t.Match(x.chunks, bySlot)
	if cap(x.hits) < len(workers) {
		x.hits = make([]int32, len(workers))
	}
	x.hits = x.hits[:len(workers)]
	per := float64(x.ask.Prompt) / float64(max(1, x.peek.PromptBytes)) * ledger.ChunkBytes
	for i, w := range workers {
		x.hits[i] = int32(float64(ledger.Units(int(bySlot[w.slot]))) * per)
	}
	x.ask.Hits = x.hits
	x.ask.Chunks, x.ask.ChunkTokens = x.chunks, per
}

// computed enters that the worker has computed the prompt.
func (x *exchange) computed() {
	if x.own {
		x.remember()
	} else { // it was remembered when it was sent
		x.worker.Load().hits.came(x.charge.Prompt(), x.charge.Believed())
	}
}

// remember notes that the worker now has the prompt in its cache. What an answer
// has used until its end is remembered once more then, as the last that was used.
func (x *exchange) remember() {
	t := x.pool.prefix.Load()
	if t == nil || len(x.chunks) == 0 {
		return
	}
	w := x.worker.Load()
	// A worker can cache what its KV holds and no more.
	if per := x.ask.ChunkTokens; per > 0 {
		most, now := int64(float64(w.capacity.Load())/per), w.believes.Load()
		if d := most - now; d*8 > now || d*8 < -now {
			w.believes.Store(most)
			t.Limit(w.slot, int(most))
		}
	}
	t.Add(w.slot, x.chunks)
	x.pool.tellCached(w, x.chunks)
}

// slotHits are lent for looking prompts up.
var slotHits = sync.Pool{New: func() any { return new([]int32) }}

// mostChunks is how many digests a request carries to its worker.
const mostChunks = 1024

// chunkField appends the digests of the prompt's chunks, by which a worker of
// ours names what leaves its cache.
func (x *exchange) chunkField(b []byte) []byte {
	if len(x.chunks) == 0 {
		return b
	}
	b = append(b, "\r\n"+api.HeaderChunks+": "...)
	for i, d := range x.chunks[:min(len(x.chunks), mostChunks)] {
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
	c := x.pool.canary.Load()
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.debt += c.share; c.debt >= 1 {
		c.debt--
		x.ask.Prefer = c.worker.acct
	} else {
		x.tried = append(x.tried, ledger.Try{Worker: c.worker.acct, Generation: c.worker.acct.Generation(x.d.ledger)})
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
