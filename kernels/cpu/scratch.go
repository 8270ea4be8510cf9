package cpu

import (
	"unsafe"

	"roundhouse/kernels"
)

// scratch is what one thread needs for itself.
type scratch struct {
	tile  tile
	tail  [16 * 64]float32     // results of a tile that has fewer than 16 outputs
	block [32 * 2 * 16]float32 // results of a group of columns: of the largest shape

	// Of fp8 in bf16's kernels: the tiles that were turned, and a matrix of them.
	pairs  []byte
	paired weight

	// Of the queries that are worked on at once.
	queries []float32      // (queries, key)
	scores  []float32      // (queries, split)
	lanes   []float32      // (queries, 16)
	first   [blockRows]int // the first token that a row sees
	end     [blockRows]int // and the one after the last
	most    []float32      // greatest score so far
	total   []float32      // sum of exponents so far
	peak    []float32      // greatest score of a split
	sums    []float32      // and its sum of exponents
	part    []float32      // (queries, value) of a split: weighted values
	fused   fused

	pages  [2][]float32 // pages that were widened
	cached [2]int       // and which of the sequence they are
	latest int          // the one that was asked for last
	turned [][16]uint32 // values that were keys
	ones   []float32
	read   []float32 // what a memory reads at two vectors
	picks  []kernels.Candidate
	before []float32 // logits that a sampling has edited
	counts []int32   // candidates by step of logit
	masses []float64 // and their chances
	edge   []kernels.Candidate
	_      [64]byte
}

// setAside makes room for the widest operation of the program.
func (s *scratch) setAside(x *executable) error {
	value, key, page, vocab, queries, pairs, read := 0, 0, 0, 0, 16, 0, 0
	for _, op := range x.p.Ops {
		pairs = max(pairs, pairedBlocks(op))
		switch op := op.(type) {
		case *kernels.Attention:
			a := newAttention(x, op)
			value, key, queries = max(value, a.wide()), max(key, op.KeyDim), max(queries, a.rows*a.group)
			tokens := 16
			if op.KV != nil {
				tokens = (op.KV.Spec().BlockTokens + 15) &^ 15
			}
			page = max(page, tokens*max(op.KeyDim, a.wide()))
		case *kernels.Delta:
			read = max(read, 2*op.ValueDim)
		case *kernels.Sample:
			vocab = max(vocab, x.p.Width(op.Logits))
		}
	}
	s.queries = make([]float32, 0, queries*key)
	s.scores, s.lanes = make([]float32, queries*split), make([]float32, queries*16)
	s.most, s.total = make([]float32, queries), make([]float32, queries)
	s.peak, s.sums = make([]float32, queries), make([]float32, queries)
	s.part = make([]float32, queries*value)
	s.pages = [2][]float32{make([]float32, page), make([]float32, page)}
	s.turned, s.ones, s.read = make([][16]uint32, value), make([]float32, value), make([]float32, read)
	for i := range s.ones {
		s.ones[i] = 1
	}
	s.picks = make([]kernels.Candidate, 0, vocab)
	if x.isa != nil && x.isa.pairsFP8 != nil {
		s.pairs = make([]byte, pairTiles*pairs*blockBytes[kindBF16])
	}
	s.alignPart()
	return nil
}

// alignPart makes the room that AMX kernels need, from a multiple of 64 bytes on.
func (s *scratch) alignPart() {
	part := make([]byte, 8<<10+63)
	s.tile.part = unsafe.Pointer(&part[-uintptr(unsafe.Pointer(&part[0]))&63])
}
