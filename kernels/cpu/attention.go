package cpu

import (
	"encoding/binary"
	"math"

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
	a := newAttention(x, op)
	x.queues = append(x.queues, a.queue)
	if op.Sinks != nil {
		a.sinks = op.Sinks.(*weight).vector
	}
	pages := pl.pagesOf(a)
	x.costs[kernels.Tokens] += 2 * float64(op.Heads*(op.KeyDim+op.ValueDim)) * split // a guess at the context
	if op.KV == nil {
		x.placed = append(x.placed, func() { a.cache.data = x.buffers[pages].memory })
	}
	if op.Cross > 0 {
		pl.rowwise(kernels.Frames, operand(op.K, op.V), []int{pages}, a.keepFrames)
	} else {
		pl.rowwise(kernels.Tokens, operand(op.K, op.V), []int{pages}, a.keep)
	}
	reads := append(operand(op.Q), pages)
	pl.spread(a)
	pl.stage(stage{reads: reads, writes: append(operand(op.Out), a.parts...), run: func(thread int) {
		s := &x.scratch[thread]
		// One item is one unit of query heads of some rows.
		units := op.Heads / a.group
		n := len(x.blocks) * units
		if a.splits > 1 { // or one split of it
			a.queue.take(n*a.splits, 1, func(i, _ int) { a.piece(s, x.blocks[i/a.splits/units], i/a.splits%units, i%a.splits) })
			return
		}
		a.queue.take(n, max(1, min(16, n/(4*x.active))), func(first, last int) {
			for i := first; i < last; i++ {
				block, unit := x.blocks[i/units], i%units
				for row := block.first; row < block.last; row += a.rows {
					a.attend(s, block.seq, row, min(row+a.rows, block.last), unit)
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
	blockRows    = 32 // rows of a block, at most
	blockQueries = 64 // queries that are worked on at once, where a unit has fewer
	leastQueries = 16 // of a unit that is a part of a group
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
	cuts  int // units that the query heads of one KV head are cut into
	group int // query heads of a unit
	rows  int // that are worked on at once
	sinks []float32
	queue *queue

	parts  []int // the buffer of what splits come to, where they may be shared out
	splits int   // of the longest row of this step, if they are shared out; else 1
}

func newAttention(x *executable, op *kernels.Attention) *attention {
	a := &attention{Attention: op, x: x, cuts: 1, queue: &queue{}}
	all := op.Heads / op.KVHeads
	for n := 2; all/n >= leastQueries && all/a.cuts > blockQueries; n++ {
		if all%n == 0 {
			a.cuts = n
		}
	}
	a.group = all / a.cuts
	a.rows = max(1, min(blockRows, blockQueries/a.group))
	return a
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
	for row := first; row < last; row++ {
		seq := a.x.seqOf(row)
		a.keepRow(seq, a.place(seq, row), row)
	}
}

// keepFrames is keep of frames.
func (a *attention) keepFrames(first, last int) {
	for seq, g := range a.x.grids.Of(kernels.Frames) {
		for row := max(first, g.First); row < min(last, g.First+g.Rows()); row++ {
			a.keepRow(seq, row-g.First, row)
		}
	}
}

// keepRow writes a row as that of a sequence's token.
func (a *attention) keepRow(seq, token, row int) {
	c := a.cache
	slot := token % c.spec.BlockTokens
	for h := range a.KVHeads {
		page := a.page(seq, token, h)
		c.putKeys(page, slot, a.x.row(a.K, row)[a.KFirst+h*a.KeyDim:][:a.KeyDim])
		if a.V != kernels.None {
			c.putValues(page, slot, a.x.row(a.V, row)[a.VFirst+h*a.ValueDim:][:a.ValueDim])
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
	if a.Cross > 0 {
		return 0, a.Cross
	}
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

// attend computes rows from to to of a sequence for the query heads of a unit.
// Query i is head i%group of row from+i/group.
func (a *attention) attend(s *scratch, seq, from, to, unit int) {
	group, n := a.group, to-from
	low, high := a.begin(s, seq, from, to, unit)
	for q := range n * group {
		clear(a.outOf(from+q/group, unit*group+q%group))
		s.most[q], s.total[q] = float32(math.Inf(-1)), 0
	}
	for at := low; at < high; {
		end := min((at/split+1)*split, high)
		a.splitOf(s, n, seq, unit, at, end)
		for q := range n * group {
			if i := q / group; max(s.first[i], at) < min(s.end[i], end) {
				y := a.outOf(from+i, unit*group+q%group)
				s.most[q], s.total[q] = a.x.isa.merge(y, a.partOf(s, q), s.ones, s.most[q], s.total[q], s.peak[q], s.sums[q])
			}
		}
		at = end
	}
	for q := range n * group {
		a.end(s, from+q/group, unit*group+q%group, s.most[q], s.total[q])
	}
}

// begin collects the queries of some rows, and what tokens the rows see: each
// of them, and all together.
func (a *attention) begin(s *scratch, seq, from, to, unit int) (low, high int) {
	s.queries, low = s.queries[:0], math.MaxInt
	for i := range to - from {
		s.queries = append(s.queries, a.x.row(a.Q, from+i)[a.QFirst+unit*a.group*a.KeyDim:][:a.group*a.KeyDim]...)
		s.first[i], s.end[i] = a.reach(seq, from+i)
		low, high = min(low, s.first[i]), max(high, s.end[i])
	}
	return low, high
}

// end divides a row's weighted values of one query head by the sum of its
// exponents.
func (a *attention) end(s *scratch, row, head int, most, total float32) {
	y := a.outOf(row, head)
	if a.sinks != nil {
		clear(s.part[:a.ValueDim])
		_, total = a.x.isa.merge(y, s.part[:a.ValueDim], s.ones, most, total, a.sinks[head], 1)
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
// values, which it spoils) to what came before it.
func (l *isa) merge(y, part, ones []float32, most, total, m, sum float32) (float32, float32) {
	top := max(most, m)
	if math.IsInf(float64(top), -1) {
		return most, total
	}
	before, now := exp(most-top), exp(m-top)
	l.normalise(y, y, ones, before)
	l.normalise(part, part, ones, now)
	l.add(y, part)
	return top, float32(total*before) + float32(sum*now)
}

// splitOf turns the scores of n rows over tokens at to end of one split into
// chances, each over the tokens that it sees; greatest scores, sums and weighted
// values go to s.peak, s.sums and partOf.
func (a *attention) splitOf(s *scratch, n, seq, unit, at, end int) {
	head, base := unit/a.cuts, at/split*split
	a.score(s, n*a.group, seq, head, at, end)
	low, high := at, end // of the tokens that all rows see
	for i := range n {
		first, last := max(s.first[i], at), min(s.end[i], end)
		if first >= last {
			low, high = end, at
			continue
		}
		low, high = max(low, first), min(high, last)
		for q := i * a.group; q < (i+1)*a.group; q++ {
			s.peak[q], s.sums[q] = a.softmax(s.chances(q, first-base, last-base))
		}
	}
	clear(s.part[:n*a.group*a.wide()])
	if low >= high {
		low, high = end, end
	}
	each := func(from func(first, last int) (int, int)) {
		for i := range n {
			if first, last := from(max(s.first[i], at), min(s.end[i], end)); first < last {
				a.weigh(s, i*a.group, (i+1)*a.group, seq, head, base, first, last)
			}
		}
	}
	each(func(first, last int) (int, int) { return first, min(last, low) })
	a.weigh(s, 0, n*a.group, seq, head, base, low, high)
	each(func(first, last int) (int, int) { return max(first, high), last })
}

// softmax turns a row's scores into chances above their greatest one, and returns
// that and their sum.
func (a *attention) softmax(scores []float32) (peak, sum float32) {
	l, scale := a.x.isa, a.Scale
	if a.SoftCap > 0 {
		for t, v := range scores {
			scores[t] = a.SoftCap * tanh(float32(v*a.Scale)/a.SoftCap)
		}
		scale = 1
	}
	// The scale is positive, so the greatest stays the greatest.
	peak = l.greatest(scores) * scale
	return peak, l.exponents(scores, scores, scale, peak)
}
