package cpu

import "roundhouse/kernels"

// From pairRows rows on it is worth while to turn tiles of fp8 into bf16, which
// their numbers are as well, and use bf16's kernels: the same bits, since
// products are exact and sums have one order. pairTiles are turned at a time.
const (
	pairRows  = 8
	pairTiles = 2
)

// multiplyFP8 multiplies by tiles first to last of fp8 in the kernels of bf16.
func (p *product) multiplyFP8(l *isa, s *scratch, first, last int) {
	w := p.w
	bytes := w.blocks * blockBytes[kindFP8]
	scales := 16 * max(w.groups, 1)
	for at := first; at < last; at += pairTiles {
		end := min(at+pairTiles, last)
		data := s.pairs[:2*bytes*(end-at)]
		l.pairsFP8(data, w.data[at*bytes:])
		s.paired = weight{kind: kindBF16, out: min(w.out, 16*end) - 16*at, in: w.in, tiles: end - at, blocks: w.blocks, data: data,
			rows: w.rows[at*scales : end*scales], groups: w.groups, group: w.group}
		q := *p
		q.w, q.column = &s.paired, p.column+16*at
		if p.bias != nil {
			q.bias = p.bias[16*at:]
		}
		q.run(l, s, 0, end-at)
	}
}

// pairedBlocks is the blocks of the longest fp8 tile of an operation.
func pairedBlocks(op kernels.Op) (most int) {
	count := func(all []kernels.Weight) {
		for _, m := range all {
			if w := m.(*weight); w.kind == kindFP8 {
				most = max(most, w.blocks)
			}
		}
	}
	switch op := op.(type) {
	case *kernels.Linear:
		count(op.Weights)
	case *kernels.MoE:
		count([]kernels.Weight{op.Router})
		count(op.GateUp)
		count(op.Down)
	}
	return most
}
