package balancer

import (
	"encoding/binary"

	"roundhouse/balancer/control"
)

// mostUntold is how many bytes of digests a pool keeps for other doors between
// two times that they are told.
const mostUntold = 1 << 20

// tellCached keeps what a worker has in its cache now for the other doors, so
// that prompts with one beginning meet at one worker whichever door they come
// through.
func (p *pool) tellCached(w *worker, chunks []uint64) {
	p.toldMu.Lock()
	defer p.toldMu.Unlock()
	if p.untold == nil {
		return
	}
	b := p.untold[w]
	for _, c := range chunks[:min(len(chunks), max(0, mostUntold-len(b))/8)] {
		b = binary.LittleEndian.AppendUint64(b, c)
	}
	p.untold[w] = b
}

// takeUntold takes what is to be told. Where nobody listens nothing is kept
// from then on.
func (p *pool) takeUntold(listeners bool) (out []control.Cached) {
	p.toldMu.Lock()
	defer p.toldMu.Unlock()
	for w, chunks := range p.untold {
		out = append(out, control.Cached{Worker: w.id, Chunks: chunks})
	}
	p.untold = nil
	if listeners {
		p.untold = map[*worker][]byte{}
	}
	return out
}

// hearCached enters what other doors' requests have brought into the workers'
// caches.
func (d *Door) hearCached(all []control.Cached) {
	if len(all) == 0 {
		return
	}
	by := map[string]control.Cached{}
	for _, c := range all {
		by[c.Worker] = c
	}
	for _, w := range d.current().workers {
		c, ok := by[w.id]
		t := w.pool.prefix.Load()
		if !ok || t == nil {
			continue
		}
		chunks := make([]uint64, 0, len(c.Chunks)/8)
		for b := c.Chunks; len(b) >= 8; b = b[8:] {
			chunks = append(chunks, binary.LittleEndian.Uint64(b))
		}
		t.Add(w.slot, chunks)
	}
}
