package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// split is how many tokens are attended at once. Splits begin at multiples of
// it and are merged in ascending order, so that a row gets the same bits
// however its sequence was cut into steps.
const split = 256

// attention adds the stages of an Attention: keys and values go to their
// pages, and then every row reads what it needs from there. Without pages the
// step's own rows are put into some that live for the step.
func (pl *plan) attention(op *kernels.Attention) {
	x := pl.x
	a := &attention{Attention: op, x: x, span: split, queue: &queue{}}
	x.queues = append(x.queues, a.queue)
	if op.Sinks != nil {
		a.sinks = op.Sinks.(*weight).vector
	}
	pages := pl.pagesOf(a)
	x.costs[kernels.Tokens] += 2 * float64(op.Heads*(op.KeyDim+op.ValueDim)) * split // a guess at the context
	if op.KV == nil {
		x.placed = append(x.placed, func() { a.cache.data = x.buffers[pages].memory })
	}
	pl.rowwise(kernels.Tokens, operand(op.K, op.V), []int{pages}, a.keep)
	pl.stage(stage{reads: append(operand(op.Q), pages), writes: operand(op.Out), run: func(thread int) {
		// One item is one KV head of one row: all query heads that read it.
		n := x.counts[kernels.Tokens] * op.KVHeads
		a.queue.take(n, max(1, min(16, n/(4*x.active))), func(first, last int) {
			s := &x.scratch[thread]
			for i := first; i < last; i++ {
				a.attend(s, i/op.KVHeads, i%op.KVHeads)
			}
		})
	}})
}

// attention is one Attention as the stages see it.
type attention struct {
	*kernels.Attention
	x     *executable
	cache *kv
	span  int
	sinks []float32
	queue *queue
}

// pagesOf finds the pages of an attention and names their buffer.
func (pl *plan) pagesOf(a *attention) int {
	if a.KV == nil {
		// One block a token: the table of a sequence is its rows.
		spec := kernels.KVSpec{Layers: 1, Blocks: (pl.x.limits.Tokens + 15) / 16, BlockTokens: 16, Heads: a.KVHeads, KeyDim: a.KeyDim, ValueDim: a.ValueDim, Type: kernels.F32}
		spec.Blocks += pl.x.limits.Seqs // each begins a block of its own
		a.cache = newKV(spec)
		return pl.buffer(spec.Blocks * a.cache.pageBytes)
	}
	a.cache = a.KV.(*kv)
	i, ok := pl.pages[a.cache]
	if !ok {
		i = pl.buffer(0)
		pl.buffers[i].fixed = true
		pl.pages[a.cache] = i
	}
	return i
}

// page is a block of a sequence for tokens from on.
func (a *attention) page(seq, token, head int) []byte {
	block := int32(token / a.cache.spec.BlockTokens)
	if a.KV == nil {
		// Blocks are given out in the order of the rows, none shared.
		block += a.x.step.Seqs[seq].First/16 + int32(seq)
		return a.cache.head(0, block, head)
	}
	return a.cache.head(a.Layer, a.x.step.Seqs[seq].Blocks[a.Group][block], head)
}

// seqOf is the sequence of a row.
func (x *executable) seqOf(row int) int {
	low, high := 0, len(x.step.Seqs)
	for high-low > 1 {
		if middle := (low + high) / 2; int(x.step.Seqs[middle].First) <= row {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// place is where a row stands in its sequence.
func (a *attention) place(seq, row int) int {
	q := &a.x.step.Seqs[seq]
	if a.KV == nil {
		return row - int(q.First)
	}
	return int(q.Context-q.Count) + row - int(q.First)
}

// keep rounds the keys and values of rows and writes them to their pages.
func (a *attention) keep(first, last int) {
	c := a.cache
	for row := first; row < last; row++ {
		seq := a.x.seqOf(row)
		token := a.place(seq, row)
		slot := token % c.spec.BlockTokens
		for h := range a.KVHeads {
			page := a.page(seq, token, h)
			key := a.x.row(a.K, row)[a.KFirst+h*a.KeyDim:][:a.KeyDim]
			for d, v := range key {
				c.put(page[(d*c.stride+slot)*c.elem:], v)
			}
			if a.V == kernels.None {
				continue
			}
			value := a.x.row(a.V, row)[a.VFirst+h*a.ValueDim:][:a.ValueDim]
			for d, v := range value {
				c.put(page[c.keyBytes+(slot*a.ValueDim+d)*c.elem:], v)
			}
		}
	}
}

// put stores one number in the type of the pages.
func (c *kv) put(b []byte, v float32) {
	switch c.spec.Type {
	case kernels.BF16:
		binary.LittleEndian.PutUint16(b, num.BF16(v))
	case kernels.F8E4M3:
		b[0] = num.E4M3(v)
	default:
		binary.LittleEndian.PutUint32(b, math.Float32bits(v))
	}
}

// attend computes the query heads of one row that read KV head head.
func (a *attention) attend(s *scratch, row, head int) {
	seq := a.x.seqOf(row)
	self := a.place(seq, row)
	first, last := 0, self
	if a.Bidirectional {
		last = int(a.x.step.Seqs[seq].Count) - 1
	}
	if a.Window > 0 {
		first = max(0, self-a.Window+1)
		if a.Bidirectional {
			last = min(last, self+a.Window-1)
		}
	}
	group := a.Heads / a.KVHeads
	query := a.x.row(a.Q, row)[a.QFirst+head*group*a.KeyDim:][:group*a.KeyDim]
	out := a.x.row(a.Out, row)[head*group*a.ValueDim:][:group*a.ValueDim]
	clear(out)
	for g := range group {
		s.most[g], s.total[g] = float32(math.Inf(-1)), 0
	}
	for at := first; at <= last; {
		end := min((at/split+1)*split, last+1)
		a.score(s, query, seq, head, at, end)
		for g := range group {
			m, sum := a.splitOf(s, g, seq, head, at, end)
			s.most[g], s.total[g] = merge(out[g*a.ValueDim:][:a.ValueDim], s.part, s.most[g], s.total[g], m, sum)
		}
		at = end
	}
	for g := range group {
		y := out[g*a.ValueDim:][:a.ValueDim]
		total := s.total[g]
		if a.sinks != nil {
			clear(s.part[:a.ValueDim])
			_, total = merge(y, s.part, s.most[g], total, a.sinks[head*group+g], 1)
		}
		for d := range y {
			y[d] /= total
		}
	}
}

// merge adds a split (its greatest score m, its sum of exponents, its weighted
// values) to what came before it.
func merge(y, part []float32, most, total, m, sum float32) (float32, float32) {
	top := max(most, m)
	if math.IsInf(float64(top), -1) {
		return most, total
	}
	before, now := exp(most-top), exp(m-top)
	for d, v := range part[:len(y)] {
		y[d] = float32(y[d]*before) + float32(v*now)
	}
	return top, float32(total*before) + float32(sum*now)
}

// splitOf turns the scores of query head g over tokens first to end of one
// split into chances; the weighted values go to s.part.
func (a *attention) splitOf(s *scratch, g, seq, head, first, end int) (most, sum float32) {
	l, scores := a.x.level, s.scores[g*split:][:end-first]
	if a.SoftCap > 0 {
		for t, v := range scores {
			scores[t] = a.SoftCap * tanh(float32(v*a.Scale)/a.SoftCap)
		}
		most = l.greatest(scores)
		sum = l.exponents(scores, scores, 1, most)
	} else {
		// The scale is positive, so the greatest stays the greatest.
		most = l.greatest(scores) * a.Scale
		sum = l.exponents(scores, scores, a.Scale, most)
	}
	a.weigh(s, scores, seq, head, first, end)
	return most, sum
}

// score fills s.scores with q·k of tokens first to end, 16 of a page at a time,
// for all query heads of the group.
func (a *attention) score(s *scratch, q []float32, seq, head, first, end int) {
	c, l := a.cache, a.x.level
	for t := first; t < end; {
		page := a.page(seq, t, head)
		slot := t % c.spec.BlockTokens
		base := slot &^ 15
		keys := unsafe.Pointer(&page[base*c.elem])
		switch c.spec.Type {
		case kernels.BF16:
			l.scoresBF16(s.lanes, q, a.KeyDim, keys, c.stride)
		case kernels.F8E4M3:
			s.widen(page[base:], a.KeyDim, 16, c.stride)
			l.scoresF32(s.lanes, q, a.KeyDim, unsafe.Pointer(&s.wide[0]), 16)
		default:
			l.scoresF32(s.lanes, q, a.KeyDim, keys, c.stride)
		}
		n := min(end-t, min(base+16, c.spec.BlockTokens)-slot)
		for g := range len(q) / a.KeyDim {
			copy(s.scores[g*split+t-first:][:n], s.lanes[16*g+slot-base:])
		}
		t += n
	}
}

// weigh fills s.part with the sum of p[t]·v over tokens first to end.
func (a *attention) weigh(s *scratch, p []float32, seq, head, first, end int) {
	c, l := a.cache, a.x.level
	part := s.part[:a.ValueDim]
	clear(part)
	for t := first; t < end; {
		page := a.page(seq, t, head)
		slot := t % c.spec.BlockTokens
		n := min(end-t, c.spec.BlockTokens-slot)
		chances := p[t-first:][:n]
		switch {
		case a.V == kernels.None:
			a.weighKeys(part, chances, page, slot)
		case c.spec.Type == kernels.BF16:
			l.weighBF16(part, chances, unsafe.Pointer(&page[c.keyBytes+slot*a.ValueDim*2]), a.ValueDim)
		case c.spec.Type == kernels.F8E4M3:
			for i := range n {
				s.widen(page[c.keyBytes+(slot+i)*a.ValueDim:], 1, a.ValueDim, a.ValueDim)
				l.weighF32(part, chances[i:i+1], unsafe.Pointer(&s.wide[0]), a.ValueDim)
			}
		default:
			l.weighF32(part, chances, unsafe.Pointer(&page[c.keyBytes+slot*a.ValueDim*4]), a.ValueDim)
		}
		t += n
	}
}

// weighKeys is weigh where the values are the first columns of the keys.
func (a *attention) weighKeys(part, p []float32, page []byte, slot int) {
	c := a.cache
	for d := range part {
		row := page[(d*c.stride+slot)*c.elem:]
		for t, x := range p {
			part[d] += float32(x * c.get(row[t*c.elem:]))
		}
	}
}

// get reads one number of a page.
func (c *kv) get(b []byte) float32 {
	switch c.spec.Type {
	case kernels.BF16:
		return num.FromBF16(binary.LittleEndian.Uint16(b))
	case kernels.F8E4M3:
		return num.FromE4M3(b[0])
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}
