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
	group := op.Heads / op.KVHeads
	a := &attention{Attention: op, x: x, group: group, rows: max(1, min(blockRows, blockQueries/group)), queue: &queue{}}
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
	reads := append(operand(op.Q), pages)
	pl.spread(a)
	pl.stage(stage{reads: reads, writes: append(operand(op.Out), a.parts...), run: func(thread int) {
		s := &x.scratch[thread]
		// One item is one KV head of a few rows: all query heads that read it.
		n := len(x.blocks) * op.KVHeads
		if a.splits > 1 { // or one split of it
			a.queue.take(n*a.splits, 1, func(i, _ int) { a.piece(s, x.blocks[i/a.splits/op.KVHeads], i/a.splits%op.KVHeads, i%a.splits) })
			return
		}
		a.queue.take(n, max(1, min(16, n/(4*x.active))), func(first, last int) {
			for i := first; i < last; i++ {
				block, head := x.blocks[i/op.KVHeads], i%op.KVHeads
				for row := block.first; row < block.last; row += a.rows {
					a.attend(s, block.seq, row, min(row+a.rows, block.last), head)
				}
			}
		})
	}})
	if a.parts != nil {
		// It touches all that the stage before it does, so that the stages after
		// it wait for that one where this one is left out.
		pl.stage(stage{reads: append(reads, a.parts...), writes: append(operand(op.Out), a.parts...), without: func() bool { return a.splits <= 1 }, run: a.join})
	}
}

// Rows of one sequence are attended together, so that keys and values are read
// once for several. What a row gets does not depend on its neighbours.
const (
	blockRows    = 8  // rows of a block, at most
	blockQueries = 16 // query heads that are worked on at once, where a group has fewer
)

// rowBlock is some rows of one sequence.
type rowBlock struct{ seq, first, last int }

// cutRows cuts the rows of a step into blocks.
func (x *executable) cutRows() {
	x.blocks = x.blocks[:0]
	for i := range x.step.Seqs {
		q := &x.step.Seqs[i]
		end := int(q.First + q.Count)
		for row := int(q.First); row < end; row += blockRows {
			x.blocks = append(x.blocks, rowBlock{i, row, min(row+blockRows, end)})
		}
	}
}

// attention is one Attention as the stages see it.
type attention struct {
	*kernels.Attention
	x     *executable
	cache *kv
	group int // query heads that read one KV head
	rows  int // that are worked on at once
	sinks []float32
	queue *queue

	parts  []int // the buffer of what splits come to, where they may be shared out
	splits int   // of the longest row of this step, if they are shared out; else 1
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
			c.putKeys(page, slot, a.x.row(a.K, row)[a.KFirst+h*a.KeyDim:][:a.KeyDim])
			if a.V != kernels.None {
				c.putValues(page, slot, a.x.row(a.V, row)[a.VFirst+h*a.ValueDim:][:a.ValueDim])
			}
		}
	}
}

// putKeys stores a token's key in the type of the pages: one number in each row
// of tokens.
func (c *kv) putKeys(page []byte, slot int, key []float32) {
	step, whole := c.stride*c.elem, page
	page = page[slot*c.elem:]
	switch c.spec.Type {
	case kernels.BF16:
		for d, v := range key {
			binary.LittleEndian.PutUint16(page[d*step:], num.BF16(v))
		}
	case kernels.F8E4M3:
		for d, v := range key {
			page[d*step] = num.E4M3(v)
		}
	case kernels.Int8:
		c.keyScales(whole)[slot] = putInt8(page, step, key)
	default:
		for d, v := range key {
			binary.LittleEndian.PutUint32(page[d*step:], math.Float32bits(v))
		}
	}
}

// putValues stores a token's value.
func (c *kv) putValues(page []byte, slot int, value []float32) {
	whole := page
	page = page[c.keyBytes+slot*len(value)*c.elem:][:len(value)*c.elem]
	switch c.spec.Type {
	case kernels.BF16:
		for d, v := range value {
			binary.LittleEndian.PutUint16(page[2*d:], num.BF16(v))
		}
	case kernels.F8E4M3:
		for d, v := range value {
			page[d] = num.E4M3(v)
		}
	case kernels.Int8:
		c.valueScales(whole)[slot] = putInt8(page, 1, value)
	default:
		for d, v := range value {
			binary.LittleEndian.PutUint32(page[4*d:], math.Float32bits(v))
		}
	}
}

// reach is the tokens that a row sees: from first up to end.
func (a *attention) reach(seq, row int) (first, end int) {
	self := a.place(seq, row)
	end = self + 1
	if a.Bidirectional {
		end = int(a.x.step.Seqs[seq].Count)
	}
	if a.Window > 0 {
		first = max(0, self-a.Window+1)
		if a.Bidirectional {
			end = min(end, self+a.Window)
		}
	}
	return first, end
}

// attend computes rows from to to of a sequence, the query heads that read KV
// head head. Query i is head i%group of row from+i/group.
func (a *attention) attend(s *scratch, seq, from, to, head int) {
	group, n := a.group, to-from
	queries, low, high := a.begin(s, seq, from, to, head)
	for q := range n * group {
		clear(a.outOf(from+q/group, head*group+q%group))
		s.most[q], s.total[q] = float32(math.Inf(-1)), 0
	}
	for at := low; at < high; {
		end := min((at/split+1)*split, high)
		a.score(s, queries, seq, head, at, end)
		a.splitOf(s, n, seq, head, at, end)
		for q := range n * group {
			if i := q / group; max(s.first[i], at) < min(s.end[i], end) {
				y := a.outOf(from+i, head*group+q%group)
				s.most[q], s.total[q] = merge(y, s.part[q*a.ValueDim:], s.most[q], s.total[q], s.peak[q], s.sums[q])
			}
		}
		at = end
	}
	for q := range n * group {
		a.end(s, from+q/group, head*group+q%group, s.most[q], s.total[q])
	}
}

// begin collects the queries of some rows, and what tokens the rows see: each
// of them, and all together.
func (a *attention) begin(s *scratch, seq, from, to, head int) (queries []float32, low, high int) {
	queries, low = s.queries[:0], math.MaxInt
	for i := range to - from {
		queries = append(queries, a.x.row(a.Q, from+i)[a.QFirst+head*a.group*a.KeyDim:][:a.group*a.KeyDim]...)
		s.first[i], s.end[i] = a.reach(seq, from+i)
		low, high = min(low, s.first[i]), max(high, s.end[i])
	}
	return queries, low, high
}

// end divides a row's weighted values of one query head by the sum of its
// exponents.
func (a *attention) end(s *scratch, row, head int, most, total float32) {
	y := a.outOf(row, head)
	if a.sinks != nil {
		clear(s.part[:a.ValueDim])
		_, total = merge(y, s.part, most, total, a.sinks[head], 1)
	}
	for d := range y {
		y[d] /= total
	}
}

// outOf is where a row's results of one query head go.
func (a *attention) outOf(row, head int) []float32 {
	return a.x.row(a.Out, row)[head*a.ValueDim:][:a.ValueDim]
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

// splitOf turns the scores of n rows over tokens at to end of one split into
// chances, each over the tokens that it sees; greatest scores, sums and weighted
// values go to s.peak, s.sum and s.part.
func (a *attention) splitOf(s *scratch, n, seq, head, at, end int) {
	l := a.x.level
	low, high := at, end // of the tokens that all rows see
	for i := range n {
		first, last := max(s.first[i], at), min(s.end[i], end)
		if first >= last {
			low, high = end, at
			continue
		}
		low, high = max(low, first), min(high, last)
		for q := i * a.group; q < (i+1)*a.group; q++ {
			scores := s.scores[q*split+first-at:][:last-first]
			scale := a.Scale
			if a.SoftCap > 0 {
				for t, v := range scores {
					scores[t] = a.SoftCap * tanh(float32(v*a.Scale)/a.SoftCap)
				}
				scale = 1
			}
			// The scale is positive, so the greatest stays the greatest.
			s.peak[q] = l.greatest(scores) * scale
			s.sums[q] = l.exponents(scores, scores, scale, s.peak[q])
		}
	}
	clear(s.part[:n*a.group*a.ValueDim])
	if low >= high {
		low, high = end, end
	}
	each := func(from func(first, last int) (int, int)) {
		for i := range n {
			if first, last := from(max(s.first[i], at), min(s.end[i], end)); first < last {
				a.weigh(s, i*a.group, (i+1)*a.group, seq, head, at, first, last)
			}
		}
	}
	each(func(first, last int) (int, int) { return first, min(last, low) })
	a.weigh(s, 0, n*a.group, seq, head, at, low, high)
	each(func(first, last int) (int, int) { return max(first, high), last })
}

// score fills s.scores with q·k of tokens first to end, 16 of a page at a time,
// for all query heads of the group.
func (a *attention) score(s *scratch, q []float32, seq, head, first, end int) {
	c, l := a.cache, a.x.level
	all := a.KeyDim * c.stride
	for t, wide := first, -1; t < end; {
		page := a.page(seq, t, head)
		slot := t % c.spec.BlockTokens
		base := slot &^ 15
		fresh := t/c.spec.BlockTokens != wide // a page's keys are widened once
		wide = t / c.spec.BlockTokens
		keys := unsafe.Pointer(&page[base*c.elem])
		switch c.spec.Type {
		case kernels.BF16:
			l.scoresBF16(s.lanes, q, a.KeyDim, keys, c.stride)
		case kernels.F8E4M3:
			if fresh {
				l.widenFP8(s.wide[:all], page)
			}
			l.scoresF32(s.lanes, q, a.KeyDim, unsafe.Pointer(&s.wide[base]), c.stride)
		case kernels.Int8:
			if fresh {
				l.widenInt8(s.wide[:all], page)
			}
			l.scoresF32(s.lanes, q, a.KeyDim, unsafe.Pointer(&s.wide[base]), c.stride)
			scaleLanes(s.lanes[:16*(len(q)/a.KeyDim)], (*lanes)(c.keyScales(page)[base:]))
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

// weigh adds p·v over tokens first to end to the parts of queries from to to;
// the chances of token at stand first in s.scores.
func (a *attention) weigh(s *scratch, from, to, seq, head, at, first, end int) {
	c, l := a.cache, a.x.level
	for t := first; t < end; {
		page := a.page(seq, t, head)
		slot := t % c.spec.BlockTokens
		n := min(end-t, c.spec.BlockTokens-slot)
		values := page
		if a.V != kernels.None {
			values = page[c.keyBytes+slot*a.ValueDim*c.elem:]
			switch c.spec.Type {
			case kernels.F8E4M3:
				l.widenFP8(s.wide[:n*a.ValueDim], values)
			case kernels.Int8:
				l.widenInt8(s.wide[:n*a.ValueDim], values)
			}
		}
		for q := from; q < to; q++ {
			part, chances := s.part[q*a.ValueDim:][:a.ValueDim], s.scores[q*split+t-at:][:n]
			if c.spec.Type == kernels.Int8 { // every chance is looked at once
				scaleChances(chances, c.scalesOfValues(page, a.V == kernels.None)[slot:])
			}
			switch {
			case a.V == kernels.None:
				a.weighKeys(part, chances, page, slot)
			case c.spec.Type == kernels.BF16:
				l.weighBF16(part, chances, unsafe.Pointer(&values[0]), a.ValueDim)
			case c.spec.Type == kernels.F8E4M3 || c.spec.Type == kernels.Int8:
				l.weighF32(part, chances, unsafe.Pointer(&s.wide[0]), a.ValueDim)
			default:
				l.weighF32(part, chances, unsafe.Pointer(&values[0]), a.ValueDim)
			}
		}
		t += n
	}
}

// weighKeys is weigh for one query where the values are the first columns of the
// keys.
func (a *attention) weighKeys(part, p []float32, page []byte, slot int) {
	c := a.cache
	for d := range part {
		row := page[(d*c.stride+slot)*c.elem:]
		for t, x := range p {
			part[d] += float32(x * c.get(row[t*c.elem:]))
		}
	}
}

// get reads one number of a page, of int8 without its scale.
func (c *kv) get(b []byte) float32 {
	switch c.spec.Type {
	case kernels.BF16:
		return num.FromBF16(binary.LittleEndian.Uint16(b))
	case kernels.F8E4M3:
		return num.FromE4M3(b[0])
	case kernels.Int8:
		return float32(int8(b[0]))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}
