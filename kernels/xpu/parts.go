package xpu

import (
	"fmt"

	"roundhouse/kernels"
)

// mostParts is how many floats the splits of attention have room for at most, unless
// one tile of rows needs more. Rows that do not fit at once go one stretch after
// another.
const mostParts = 16 << 20

// The arguments of "attend_…" and "merge" that are set for each stretch of rows; the
// stretch's first row comes behind the splits.
const (
	attendTiles  = 24
	attendSplits = 30
	mergeSplits  = 1
)

// parted is the two kernels of an attention: the first leaves what each split of the
// context comes to, the second puts a row's splits together.
type parted struct {
	e             *executable
	attend, merge *launch
	op            *kernels.Attention
	size          int // of tiles of rows: which of the layout's
	groups        int // of heads
}

// perSplit is the floats that one row leaves of each split.
func perSplit(op *kernels.Attention) int { return op.Heads * (op.ValueDim + 2) }

// splitsOf is the splits of so many tokens.
func splitsOf(tokens int) int { return (tokens + splitTokens - 1) / splitTokens }

// attentionRoom sets room aside for the splits of the largest attention: of all rows that
// a step may have if mostParts allows it, and of one tile with the longest context.
func (e *executable) attentionRoom() {
	need := 0
	for _, op := range e.p.Ops {
		a, ok := op.(*kernels.Attention)
		if !ok {
			continue
		}
		splits := splitsOf(e.longest(a))
		tile := min(e.b.tuning.tileRows(a.Heads/a.KVHeads), e.limits.Tokens)
		need = max(need, perSplit(a)*splits*tile, min(perSplit(a)*splits*e.limits.Tokens, e.b.mostParts))
	}
	if need > 0 {
		e.parts, e.partsRoom = e.lend(need), need
	}
}

// longest is the longest context that an attention can have.
func (e *executable) longest(a *kernels.Attention) int {
	switch {
	case a.KV == nil:
		return e.limits.Tokens
	case e.limits.Context > 0:
		return e.limits.Context
	}
	spec := a.KV.Spec()
	return spec.Blocks * spec.BlockTokens
}

// run enqueues both for a step, stretch by stretch.
func (p *parted) run() error {
	e, l := p.e, &p.e.layout
	first := l.rowTiles + 2*p.size*e.limits.Tokens
	for at, all := 0, e.tiled[p.size]; at < all; {
		n, rows, splits := p.stretch(e.words[first+2*at : first+2*all])
		if need := rows * splits * perSplit(p.op); need > e.partsRoom {
			return &kernels.StepError{Seq: -1, Err: fmt.Errorf("a context of %d tokens; the longest is %d", splits*splitTokens, e.longest(p.op))}
		}
		row := int(e.words[first+2*at])
		for _, a := range []struct {
			to       *launch
			index, v int
		}{
			{p.attend, attendTiles, first + 2*at}, {p.attend, attendSplits, splits}, {p.attend, attendSplits + 1, row},
			{p.merge, mergeSplits, splits}, {p.merge, mergeSplits + 1, row},
		} {
			if err := a.to.kernel.SetInt(a.index, int32(a.v)); err != nil {
				return err
			}
		}
		if err := p.attend.kernel.Run(dims(64*splits, p.groups, n), p.attend.local); err != nil {
			return err
		}
		if err := p.merge.kernel.Run(dims(p.op.ValueDim, p.op.Heads, rows), p.merge.local); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// stretch is how many of the next tiles go together: one, and as many more as the room
// has splits for.
func (p *parted) stretch(tiles []int32) (n, rows, splits int) {
	for ; 2*n < len(tiles); n++ {
		first, count := int(tiles[2*n]), int(tiles[2*n+1])
		more := max(splits, p.splits(first+count-1))
		if n > 0 && (rows+count)*more*perSplit(p.op) > p.e.partsRoom {
			return n, rows, splits
		}
		rows, splits = rows+count, more
	}
	return n, rows, splits
}

// splits is how many splits a row sees, the ones before its window too.
func (p *parted) splits(row int) int {
	e := p.e
	if p.op.Bidirectional {
		return splitsOf(int(e.words[e.layout.contexts+int(e.words[e.layout.seqs+row])]))
	}
	return splitsOf(int(e.words[e.layout.selfs+row]) + 1)
}
