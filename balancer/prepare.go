package balancer

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/cespare/xxhash/v2"

	"roundhouse/balancer/ledger"
	"roundhouse/balancer/surface"
	"roundhouse/worker/api"
)

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
	b.Ask.Hits = nil
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
	per := float64(b.Ask.Prompt) / float64(max(1, a.peek.PromptBytes, a.promptLen())) * ledger.ChunkBytes
	for i, w := range workers {
		b.hits[i] = int32(float64(ledger.Units(int(bySlot[w.Slot]))) * per)
	}
	b.Ask.Hits = b.hits
	b.Ask.Chunks, b.Ask.ChunkTokens = b.chunks, per
}

// remember notes that the worker has the prompt in its cache now.
func (x *exchange) remember() {
	b := &x.booking
	x.asked.pool.Remember(b.worker.Load(), b.chunks, b.Ask.ChunkTokens)
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
