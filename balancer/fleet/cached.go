package fleet

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
func (p *Pool) tellCached(w *Worker, chunks []uint64) {
	p.toldMu.Lock()
	defer p.toldMu.Unlock()
	if p.Untold == nil {
		return
	}
	b := p.Untold[w]
	for _, c := range chunks[:min(len(chunks), max(0, mostUntold-len(b))/8)] {
		b = binary.LittleEndian.AppendUint64(b, c)
	}
	p.Untold[w] = b
}

// TakeUntold takes what is to be told. Where nobody listens nothing is kept
// from then on.
func (p *Pool) TakeUntold(listeners bool) (out []control.Cached) {
	p.toldMu.Lock()
	defer p.toldMu.Unlock()
	for w, chunks := range p.Untold {
		out = append(out, control.Cached{Worker: w.ID, Chunks: chunks})
	}
	p.Untold = nil
	if listeners {
		p.Untold = map[*Worker][]byte{}
	}
	return out
}

// Remember notes that a worker now has a prompt in its cache, by the digests of its
// chunks of so many tokens each. What
// an answer has used until its end is remembered once more then, as the last that
// was used.
func (p *Pool) Remember(w *Worker, chunks []uint64, per float64) {
	t := p.Prefix.Load()
	if t == nil || len(chunks) == 0 {
		return
	}
	// A worker can cache what its KV holds and no more.
	if per > 0 {
		most, now := int64(float64(w.capacity.Load())/per), w.believes.Load()
		if d := most - now; d*8 > now || d*8 < -now {
			w.believes.Store(most)
			t.Limit(w.Slot, int(most))
		}
	}
	t.Add(w.Slot, chunks)
	p.tellCached(w, chunks)
}
