package cpu

import "math"

// mostParts is the most memory that the splits of a step may come to.
const mostParts = 16 << 20

// spread makes room for the splits of an attention, which threads share out
// where there are few rows and KV heads but long contexts. They are merged in
// their order, so that a row gets the same bits.
func (pl *plan) spread(a *attention) {
	a.splits = 1
	tokens := pl.x.limits.Tokens
	if a.KV != nil {
		tokens = a.cache.spec.Blocks * a.cache.spec.BlockTokens
	}
	if a.Cross > 0 {
		tokens = a.Cross
	}
	if a.Window > 0 {
		tokens = min(tokens, a.Window+split)
	}
	n := (tokens + split - 1) / split
	if pl.x.threads == 1 || n < 2 {
		return
	}
	bytes := 4 * pl.x.limits.Tokens * a.Heads * n * a.partSize()
	a.parts = []int{pl.buffer(min(bytes, mostParts))}
	pl.x.spreads = append(pl.x.spreads, a)
}

// partSize is the numbers that a split comes to: weighted values, the greatest
// score and the sum of exponents.
func (a *attention) partSize() int { return a.ValueDim + 2 }

// decide says how many splits are shared out in this step.
func (a *attention) decide() {
	a.splits = 1
	x := a.x
	if n := len(x.blocks) * a.Heads / a.group; x.active == 1 || n >= 4*x.active || n%x.active == 0 {
		return // each thread has as much to do as it is
	}
	longest := 1
	for i := range x.step.Seqs {
		q := &x.step.Seqs[i]
		for row := int(q.First); row < int(q.First+q.Count); row++ {
			longest = max(longest, splitsOf(a.reach(i, row)))
		}
	}
	if 4*len(x.step.Tokens)*a.Heads*longest*a.partSize() <= x.buffers[a.parts[0]].bytes {
		a.splits = longest
	}
}

// splitsOf is the number of splits of tokens first to end.
func splitsOf(first, end int) int {
	if first >= end {
		return 0
	}
	return (end-1)/split - first/split + 1
}

// part is what a split of a row comes to, of one query head.
func (a *attention) part(row, head, number int) []float32 {
	size := a.partSize()
	return floats(a.x.buffers[a.parts[0]].memory)[((row*a.Heads+head)*a.splits+number)*size:][:size]
}

// piece attends a block's rows to one split, for the query heads of one unit.
func (a *attention) piece(s *scratch, block rowBlock, unit, number int) {
	for from := block.first; from < block.last; from += a.rows {
		n := min(a.rows, block.last-from)
		low, high := a.begin(s, block.seq, from, from+n, unit)
		at := max(low, (low/split+number)*split)
		end := min((at/split+1)*split, high)
		if at >= end {
			continue
		}
		a.splitOf(s, n, block.seq, unit, at, end)
		for q := range n * a.group {
			i := q / a.group
			if max(s.first[i], at) >= min(s.end[i], end) {
				continue
			}
			part := a.part(from+i, unit*a.group+q%a.group, at/split-s.first[i]/split)
			copy(part, a.partOf(s, q))
			part[a.ValueDim], part[a.ValueDim+1] = s.peak[q], s.sums[q]
		}
	}
}

// join merges the splits of a thread's share of all rows and query heads.
func (a *attention) join(thread int) {
	x := a.x
	for i := range x.step.Seqs {
		q := &x.step.Seqs[i]
		from, to := part(int(q.Count)*a.Heads, thread, x.active)
		for k := from; k < to; k++ {
			row, head := int(q.First)+k/a.Heads, k%a.Heads
			y, most, total := a.outOf(row, head), float32(math.Inf(-1)), float32(0)
			clear(y)
			for number := range splitsOf(a.reach(i, row)) {
				p := a.part(row, head, number)
				most, total = x.isa.merge(y, p[:a.ValueDim], x.scratch[thread].ones, most, total, p[a.ValueDim], p[a.ValueDim+1])
			}
			a.end(&x.scratch[thread], row, head, most, total)
		}
	}
}
